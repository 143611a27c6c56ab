"""The gateway: the request path and the control plane. Never imports torch, peft, vllm, distill or rl."""
