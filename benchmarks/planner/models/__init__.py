"""The networks, in plain PyTorch. Every builder takes sizes and returns (module, inputs); forward returns the loss."""
