"""Owns the policy's weights: gradients from a batch, optimizer steps, log-probs, checkpoints, merged export.

SFT and GRPO are the same trainer with another loss. Must not sample, judge or decide when to stop.
"""

import math
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from peft import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file, save_file
from torch import Tensor

from rl.losses import Tokens, denominator, loss_terms
from rl.pack import MicroBatch, check_masks, pack
from rl.precision import Precision, native_precision
from rl.trainer import checkpoint
from rl.trainer.attention import attention_tree
from rl.trainer.drift import measure_drift
from rl.trainer.head import Head
from rl.trainer.lora import AdaptedLayers
from rl.trainer.model import load_adapted
from rl.trainer.norm import slim_norms
from rl.types import Datum, Drift, LossSpec, StepStats


class TrainingError(RuntimeError):
    """Training cannot go on without doing harm (a gradient that is not finite); the weights are untouched."""


@dataclass(frozen=True, slots=True)
class TrainerSpec:
    """How to train. `dtype` None: what this machine multiplies natively. `micro_tokens` bounds a packed micro-batch
    (memory grows with it), `block` tunes tree attention on a CPU. `recompute` keeps of each layer only what went in and
    computes the layer again for its backward pass: far less memory, a third more time, the same gradients."""

    rank: int = 16
    alpha: int = 32
    dtype: Precision | None = None
    device: str | None = None
    threads: int | None = None
    seed: int = 0
    micro_tokens: int = 2048
    block: int = 32
    recompute: bool = False
    clip: float = 1.0
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0


class Trainer:
    """A frozen base model with a LoRA adapter and its optimizer. Gradients add up until `optim_step`."""

    def __init__(self, model_dir: Path | str, spec: TrainerSpec = TrainerSpec()) -> None:
        self.model_dir, self.spec = Path(model_dir), spec
        if spec.threads:
            torch.set_num_threads(spec.threads)
        self.device = spec.device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = getattr(torch, spec.dtype or native_precision())
        self._model = load_adapted(self.model_dir, dtype, self.device, rank=spec.rank, alpha=spec.alpha, seed=spec.seed)
        self.layers = AdaptedLayers(self._model)
        causal = self._model.get_base_model()
        if spec.recompute:
            causal.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        self._decoder = causal.get_decoder()
        slim_norms(self._decoder)
        self._head = Head.of(causal.get_output_embeddings().weight.detach())
        self._parameters = [parameter for parameter in self._model.parameters() if parameter.requires_grad]
        self._optimizer = torch.optim.AdamW(
            self._parameters, lr=0.0, betas=spec.betas, weight_decay=spec.weight_decay, foreach=True
        )
        self._reference: dict[str, Tensor] | None = None
        self.steps = 0

    @property
    def hidden_size(self) -> int:
        return int(self._head.exact.shape[1])

    def forward_backward(self, data: Sequence[Datum], loss: LossSpec) -> StepStats:
        """Add this batch's gradient. Raises MaskError before any work if the masks cannot be right."""
        began = time.perf_counter()
        trained = check_masks(data)
        divisor = denominator(loss, data)
        batches = pack(data, self.spec.micro_tokens)
        total = mismatch = 0.0
        clipped = 0
        logprobs = [0.0] * len(data)
        for batch in batches:
            reference = self._frozen_logprobs(batch, loss.temperature, self._reference) if loss.beta else None
            tokens = self._tokens(batch, data, self._pair_logprobs(batch, loss.temperature), reference)
            terms = loss_terms(loss, tokens, divisor)
            terms.loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            total += float(terms.loss.detach())
            mismatch += terms.mismatch_sum
            clipped += terms.clipped
            for sequence, value in zip(tokens.sequence.tolist(), tokens.logprobs.tolist(), strict=True):
                logprobs[batch.data_index[sequence]] += value
        sampled = loss.name != "cross_entropy" and any(datum.sampler_logprobs is not None for datum in data)
        return StepStats(
            loss=total,
            sequences=len(data),
            trained_tokens=trained,
            packed_tokens=sum(batch.size for batch in batches),
            plain_tokens=sum(len(datum.tokens) for datum in data),
            micro_batches=len(batches),
            mismatch_kl=mismatch / trained if sampled else None,
            entropy=-sum(logprobs) / trained,
            clipped_share=clipped / trained,
            seconds=time.perf_counter() - began,
            sequence_logprobs=tuple(logprobs),
        )

    def discard(self) -> None:
        """Forget the gradients added since the last optimizer step."""
        self._optimizer.zero_grad()

    def optim_step(self, lr: float) -> float:
        """Clip, step, forget the gradients, merge anew. Returns the gradient norm before clipping."""
        norm = float(torch.nn.utils.clip_grad_norm_(self._parameters, self.spec.clip))
        if not math.isfinite(norm):
            self.discard()
            raise TrainingError(
                f"the gradient of step {self.steps + 1} is {norm}: nothing was changed; resume from the "
                "last checkpoint with a lower learning rate"
            )
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.layers.merge()
        self.steps += 1
        return norm

    @torch.no_grad()
    def logprobs(self, data: Sequence[Datum], *, base: bool = False, temperature: float = 1.0) -> list[list[float]]:
        """Log-probs (nats) of every trained token, 0 elsewhere; of the base model if `base`. Changes nothing."""
        out = [[0.0] * len(datum.tokens) for datum in data]
        for batch in pack(data, self.spec.micro_tokens):
            pairs = self._frozen_logprobs(batch, temperature, None) if base else self._pair_logprobs(batch, temperature)
            flat = zip(
                pairs[batch.flat_pair].tolist(), batch.flat_sequence.tolist(), batch.flat_token.tolist(), strict=True
            )
            for value, sequence, place in flat:
                out[batch.data_index[sequence]][place] = value
        return out

    def save(self, folder: Path) -> None:
        """Write adapter, optimizer and counters to `folder`, whole or not at all."""
        with checkpoint.whole_folder(folder) as work:
            state = {"steps": self.steps, "spec": asdict(self.spec)}
            checkpoint.write(work, get_peft_model_state_dict(self._model), self._optimizer, state)
            self._model.peft_config["default"].save_pretrained(work)

    def load(self, folder: Path) -> None:
        """Go on from a checkpoint: the next step is the one that would have followed `save`."""
        adapter, state = checkpoint.read(folder, self._optimizer)
        set_peft_model_state_dict(self._model, adapter)
        self.steps = int(state["steps"])
        self.layers.merge()

    def start_from(self, folder: Path) -> None:
        """Take a checkpoint's weights alone: a new phase begins with fresh optimizer state."""
        self.load(folder)
        self._optimizer.state.clear()
        self.steps = 0

    def refer_to(self, folder: Path | None) -> None:
        """What `LossSpec.beta` keeps the policy near: a checkpoint, or with None (as at first) the base model."""
        self._reference = None
        if folder is not None:
            adapter = load_file(folder / checkpoint.ADAPTER)
            self._reference = {name: tensor.to(self.device) for name, tensor in adapter.items()}

    def export_merged(self, folder: Path) -> None:
        """Write the merged model, in its type, as a Hugging Face folder that engines load, whole or not at all."""
        merged = {layer.name: layer.merged for layer in self.layers}
        tensors: dict[str, Tensor] = {}
        for name, tensor in self._plain_tensors():
            module, _, leaf = name.rpartition(".")
            value = merged[module] if leaf == "weight" and module in merged else tensor
            tensors[name.removeprefix("base_model.model.").replace(".base_layer", "")] = value.contiguous()
        with checkpoint.whole_folder(folder) as work:
            save_file(tensors, work / "model.safetensors", metadata={"format": "pt"})
            for file in self.model_dir.iterdir():
                if file.is_file() and not file.name.endswith((".safetensors", ".safetensors.index.json", ".gguf")):
                    shutil.copyfile(file, work / file.name)

    def drift(self, probe: Sequence[Datum], since: Path | None = None) -> Drift:
        """How far the model is from the base model, or from the checkpoint `since`, seen on the probe's tokens."""
        return measure_drift(self, probe, since)

    def adapter(self) -> dict[str, Tensor]:
        """The adapter's tensors under peft's names (not copies)."""
        tensors: dict[str, Tensor] = get_peft_model_state_dict(self._model)
        return tensors

    def gradients(self) -> dict[str, Tensor]:
        """What `forward_backward` has added up since the last step, under the parameters' names (copies)."""
        named = self._model.named_parameters()
        return {name: value.grad.clone() for name, value in named if value.grad is not None}

    def set_adapter(self, adapter: dict[str, Tensor]) -> None:
        """Replace the adapter's tensors (optimizer untouched) and merge."""
        set_peft_model_state_dict(self._model, adapter)
        self.layers.merge()

    def _plain_tensors(self) -> Iterable[tuple[str, Tensor]]:
        tied = set(getattr(self._model.get_base_model(), "_tied_weights_keys", None) or [])
        ties = bool(getattr(self._model.get_base_model().config, "tie_word_embeddings", False))
        for name, tensor in self._model.state_dict().items():
            plain = name.removeprefix("base_model.model.")
            if ".lora_" in name or (ties and plain in tied):
                continue
            yield name.replace(".base_layer", ""), tensor

    def _hidden(self, batch: MicroBatch) -> Tensor:
        out = self._decoder(
            input_ids=batch.ids[None].to(self.device),
            position_ids=batch.positions[None].to(self.device),
            use_cache=False,
            tree=attention_tree(batch.positions, batch.end, self.spec.block, self.device),
        )
        hidden: Tensor = out.last_hidden_state[0]
        return hidden

    def _pair_logprobs(self, batch: MicroBatch, temperature: float) -> Tensor:
        hidden = self._hidden(batch)[batch.nodes.to(self.device)]
        rows, tokens = batch.pair_rows.to(self.device), batch.pair_tokens.to(self.device)
        return self._head.logprobs(hidden, rows, tokens, temperature)

    @torch.no_grad()
    def _frozen_logprobs(self, batch: MicroBatch, temperature: float, adapter: dict[str, Tensor] | None) -> Tensor:
        with self.layers.frozen_at(adapter):
            return self._pair_logprobs(batch, temperature)

    def _tokens(self, batch: MicroBatch, data: Sequence[Datum], pairs: Tensor, reference: Tensor | None) -> Tokens:
        """Spread the pairs' log-probs over the sequences and set beside them what the caller knows of each token."""
        places = list(zip(batch.flat_sequence.tolist(), batch.flat_token.tolist(), strict=True))
        owners = [data[index] for index in batch.data_index]

        def column(values: Iterable[float]) -> Tensor:
            return torch.tensor(list(values), dtype=torch.float32, device=self.device)

        def optional(name: str) -> Tensor | None:
            lists = [getattr(owner, name) for owner in owners]
            if any(values is None for values in lists):
                return None
            return column(lists[sequence][place] for sequence, place in places)

        flat_pair = batch.flat_pair.to(self.device)
        return Tokens(
            logprobs=pairs[flat_pair],
            weights=column(owners[sequence].weights[place] for sequence, place in places),
            advantages=column(owners[sequence].advantage for sequence, _ in places),
            old=optional("old_logprobs"),
            sampler=optional("sampler_logprobs"),
            sequence=batch.flat_sequence.to(self.device),
            sequences=len(owners),
            reference=None if reference is None else reference[flat_pair],
        )
