"""Models and further calls whose ATen calls record_calls.py writes down. Needs transformers and torchvision for the models of theirs."""

import sys

import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.layer = getattr(nn, kind)(12, 10, num_layers=2, batch_first=True, **options)
        self.head = nn.Linear(10 * (2 if options.get("bidirectional") else 1), 3)

    def forward(self, ids):
        hidden, _ = self.layer(self.embedding(ids))
        return F.cross_entropy(self.head(hidden[:, -1]), torch.zeros(ids.shape[0], dtype=torch.long, device=ids.device))


def hugging_face():
    import transformers as t

    common = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, vocab_size=99)
    for attention in ("sdpa", "eager"):
        extra = dict(attn_implementation=attention)
        yield "gpt2", t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=1, n_head=4, vocab_size=99, n_positions=64, **extra)), "lm"
        yield "bert", t.BertForMaskedLM(t.BertConfig(**common, **extra)), "lm"
        yield "minilm", t.BertForSequenceClassification(t.BertConfig(**common, num_labels=3, **extra)), "class"
        yield "llama", t.LlamaForCausalLM(t.LlamaConfig(**common, num_key_value_heads=2, **extra)), "lm"
        yield "vit", t.ViTForImageClassification(
            t.ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8, **extra)), "image"


def vision():
    import torchvision.models as m

    yield "resnet50", m.ResNet(m.resnet.Bottleneck, [1, 1, 1, 1]), "pixels"
    yield "vit_b", m.VisionTransformer(image_size=32, patch_size=8, num_layers=1, num_heads=4, hidden_dim=32, mlp_dim=64), "pixels32"
    yield "convnext", m.convnext_tiny(), "pixels"
    yield "mobilenet", m.mobilenet_v3_small(), "pixels"
    yield "efficientnet", m.efficientnet_b0(), "pixels"
    yield "densenet", m.DenseNet(growth_rate=8, block_config=(2, 2), num_init_features=16), "pixels"
    yield "swin", m.SwinTransformer([4, 4], 24, [1, 1], [2, 4], [4, 4], stochastic_depth_prob=0.1), "pixels"


def recurrent():
    yield "lstm", Classifier("LSTM"), "ids"
    yield "lstm_bi", Classifier("LSTM", bidirectional=True, dropout=0.2), "ids"
    yield "gru", Classifier("GRU"), "ids"
    yield "rnn", Classifier("RNN"), "ids"
    yield "transformer", nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), "features"


def models(recorder, run):
    device = recorder.device
    for family in (hugging_face, vision, recurrent):
        try:
            instances = list(family())
        except ImportError as error:
            print("not installed:", error, file=sys.stderr, flush=True)
            continue
        for name, model, kind in instances:
            for dtype in (torch.float32, torch.bfloat16):
                for channels_last in (False, True) if kind.startswith("pixels") else (False,):
                    model = model.to(device=device, dtype=dtype).train()
                    if channels_last:
                        model = model.to(memory_format=torch.channels_last)
                    ids = torch.arange(32, device=device).view(2, 16) % 50
                    side = 32 if kind in ("image", "pixels32") else 64
                    pixels = torch.rand(2, 3, side, side, device=device, dtype=dtype)
                    if channels_last:
                        pixels = pixels.contiguous(memory_format=torch.channels_last)
                    parameters = {k: v for k, v in [*model.named_parameters(), *model.named_buffers()]}

                    def step(parameters):
                        if kind == "lm":
                            return torch.func.functional_call(model, parameters, (), dict(input_ids=ids, labels=ids)).loss
                        if kind == "class":
                            labels = torch.zeros(2, dtype=torch.long, device=device)
                            return torch.func.functional_call(model, parameters, (), dict(input_ids=ids, labels=labels)).loss
                        if kind == "image":
                            labels = torch.zeros(2, dtype=torch.long, device=device)
                            return torch.func.functional_call(model, parameters, (), dict(pixel_values=pixels, labels=labels)).loss
                        if kind == "ids":
                            return torch.func.functional_call(model, parameters, (ids,))
                        if kind == "features":
                            x = torch.rand(2, 7, 16, device=device, dtype=dtype)
                            return torch.func.functional_call(model, parameters, (x,)).sum()
                        output = torch.func.functional_call(model, parameters, (pixels,))
                        return F.cross_entropy(output.float(), torch.zeros(2, dtype=torch.long, device=device))

                    try:
                        run(recorder, step, (parameters,), {})
                    except Exception as error:
                        recorder.skipped[f"model {name} {dtype}: {type(error).__name__}: {str(error)[:200]}"] += 1
                        torch._disable_functionalization()
            print("model", name, len(recorder.lines), file=sys.stderr, flush=True)


def attention(device):
    """scaled_dot_product_attention under each backend, in the layouts that models have."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
    if device != "cpu":
        backends += [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for b, h, kv, s, t, d, dv in ((2, 4, 4, 16, 16, 64, 64), (1, 3, 3, 100, 72, 40, 40), (2, 4, 2, 24, 24, 64, 64), (2, 4, 4, 33, 65, 128, 128),
                                      (2, 4, 4, 16, 16, 32, 64)):
            for layout in ("bhsd", "bshd", "packed", "sbhd"):
                def make(heads, tokens, size):
                    options = dict(device=device, dtype=dtype)
                    if layout == "bhsd":
                        x = torch.rand(b, heads, tokens, size, **options)
                    elif layout == "bshd":
                        x = torch.rand(b, tokens, heads, size, **options).transpose(1, 2)
                    elif layout == "packed":
                        x = torch.rand(b, tokens, 3 * heads * size, **options)[..., heads * size:2 * heads * size]
                        x = x.view(b, tokens, heads, size).transpose(1, 2)
                    else:
                        x = torch.rand(tokens, b * heads, size, **options).transpose(0, 1).view(b, heads, tokens, size)
                    return x.detach().requires_grad_(True)
                for causal, masked, dropout in ((False, None, 0.0), (True, None, 0.0), (False, "bool", 0.0), (False, "float", 0.1), (True, None, 0.2)):
                    if causal and s != t:
                        continue
                    mask = None
                    if masked == "bool":
                        mask = torch.ones(b, 1, s, t, dtype=torch.bool, device=device)
                    elif masked == "float":
                        mask = torch.zeros(b, h, s, t, dtype=dtype, device=device, requires_grad=layout == "bhsd")
                    for backend in backends:
                        def call(q, k, v, m):
                            with sdpa_kernel(backend):
                                return F.scaled_dot_product_attention(q, k, v, m, dropout, causal, enable_gqa=h != kv)
                        yield call, (make(h, s, d), make(kv, t, d), make(kv, t, dv), mask)


def layers(device):
    r = lambda *sizes, **options: torch.rand(*sizes, device=device, requires_grad=options.pop("grad", True), **options)
    images = [r(2, 6, 9, 8), r(2, 6, 9, 8).detach().contiguous(memory_format=torch.channels_last).requires_grad_(True)]
    images += [x.detach().bfloat16().requires_grad_(True) for x in images] + [images[0].detach().double().requires_grad_(True)]
    for x in images:
        w = lambda *sizes: torch.rand(*sizes, device=device, dtype=x.dtype, requires_grad=True)
        for weight_format in (torch.contiguous_format, torch.channels_last):
            k = w(4, 6, 3, 3).detach().contiguous(memory_format=weight_format).requires_grad_(True)
            for stride, padding, dilation in ((1, 1, 1), (2, 0, 1), (1, 2, 2)):
                yield F.conv2d, (x, k, w(4), stride, padding, dilation)
                yield F.conv2d, (x, k, None, stride, padding, dilation)
            depthwise = w(6, 1, 3, 3).detach().contiguous(memory_format=weight_format).requires_grad_(True)
            yield F.conv2d, (x, depthwise, None, 1, 1, 1, 6)
            yield F.conv2d, (x, w(4, 6, 1, 1), None, 1)
            up = w(6, 4, 3, 3).detach().contiguous(memory_format=weight_format).requires_grad_(True)
            yield F.conv_transpose2d, (x, up, w(4), 2, 1, 1)
            yield F.conv_transpose2d, (x, w(6, 2, 3, 3), None, 1, 1, 0, 2)
        yield (lambda x, k: F.conv2d(x.detach(), k)), (x, w(4, 6, 3, 3))  # no input gradient
        yield (lambda x, k: F.conv2d(x[0], k)), (x, w(4, 6, 3, 3))
        for weight in (w(6), None):
            bias = None if weight is None else w(6)
            for training in (True, False):
                yield F.batch_norm, (x, torch.zeros_like(w(6)).detach(), torch.ones_like(w(6)).detach(), weight, bias, training)
            yield F.group_norm, (x, 3, weight, bias)
            yield F.instance_norm, (x, None, None, weight, bias)
        if x.dtype == torch.bfloat16:
            f32 = lambda n: torch.rand(n, device=device, requires_grad=True)
            for training in (True, False):
                yield F.batch_norm, (x, f32(6).detach(), f32(6).detach(), f32(6), f32(6), training)
            yield F.group_norm, (x, 3, f32(6), f32(6))
        yield F.layer_norm, (x, (8,), w(8), w(8))
        yield F.layer_norm, (x, (9, 8), w(9, 8), None)
        yield F.layer_norm, (x, (8,), None, None)
        yield F.rms_norm, (x, (8,), w(8))
        yield F.rms_norm, (x, (9, 8), None)
        for dim in (0, 1, -1):
            yield F.softmax, (x, dim)
            yield F.log_softmax, (x, dim)
        yield F.max_pool2d, (x, 3, 2, 1)
        yield F.avg_pool2d, (x, 3, 2, 1)
        for size in (1, 3, (4, 5)):
            yield F.adaptive_avg_pool2d, (x, size)
            yield F.adaptive_max_pool2d, (x, size)
        for mode in ("nearest", "bilinear", "bicubic", "nearest-exact", "area"):
            yield (lambda x, mode=mode: F.interpolate(x, scale_factor=2.0, mode=mode)), (x,)
        yield (lambda x: F.interpolate(x, size=(7, 5), mode="bilinear", antialias=True)), (x,)
        for mode in ("constant", "reflect", "replicate", "circular"):
            yield (lambda x, mode=mode: F.pad(x, (1, 2, 0, 1), mode=mode)), (x,)
        yield F.unfold, (x, 3)
        yield F.pixel_shuffle, (x.detach().reshape(2, 4, 9, 12).requires_grad_(True), 2)
        yield F.dropout, (x, 0.3)
        yield F.dropout2d, (x, 0.3)
        yield F.alpha_dropout, (x, 0.3, True)
        yield (lambda x: F.rrelu(x, training=True)), (x,)
        yield F.prelu, (x, w(6))
        yield F.prelu, (x, w(1))
        yield F.cross_entropy, (x, torch.zeros(2, 9, 8, dtype=torch.long, device=device))
        yield F.grid_sample, (x, w(2, 5, 4, 2))
        yield (lambda x: torch.repeat_interleave(x, 2, 1)), (x,)
        yield (lambda x: x.unfold(2, 3, 2)), (x,)
        yield (lambda x: torch.cumsum(x, 1) + torch.cumprod(x, 2)), (x,)
        yield (lambda x: x.sort(-1)[0] + x.topk(8)[0]), (x,)
        yield (lambda x: torch.multinomial(F.softmax(x.float(), -1).view(-1, 8), 2)), (x,)
        for functional in (lambda x: torch.bernoulli(x), lambda x: torch.bernoulli(x, 0.5), lambda x: x.detach().clone().bernoulli_(0.5),
                           lambda x: x.detach().clone().normal_(), lambda x: x.detach().clone().uniform_(), lambda x: x.detach().clone().exponential_(),
                           lambda x: x.detach().clone().random_(), lambda x: torch.rand_like(x), lambda x: torch.randn_like(x),
                           lambda x: F.gumbel_softmax(x, dim=1), lambda x: F.gumbel_softmax(x, hard=True), lambda x: torch.normal(x, x),
                           lambda x: torch.randint_like(x, 5), lambda x: x.detach().clone().bernoulli_(x.detach()), lambda x: torch.poisson(x.float()),
                           lambda x: x.detach().clone().log_normal_(), lambda x: x.detach().clone().cauchy_(), lambda x: x.detach().clone().geometric_(0.5),
                           lambda x: x.detach().clone().random_(5), lambda x: x.detach().clone().random_(2, 5)):
            yield functional, (x,)
    yield (lambda: torch.randperm(9, device=device)), ()
    yield (lambda: torch.rand(2, 3, device=device) + torch.randn(2, 3, device=device) + torch.randint(5, (2, 3), device=device)), ()
    for x, k in ((r(2, 6, 9), r(4, 6, 3)), (r(2, 9, 6).detach().transpose(1, 2).requires_grad_(True), r(4, 6, 3))):
        yield F.conv1d, (x, k, r(4), 1, 1)
        yield F.conv_transpose1d, (x, r(6, 4, 3), None, 2)
        yield F.batch_norm, (x, r(6, grad=False), r(6, grad=False), r(6), r(6), True)
        yield F.group_norm, (x, 3, r(6), r(6))
        for pool in (F.max_pool1d, F.avg_pool1d, F.adaptive_avg_pool1d, F.adaptive_max_pool1d):
            yield pool, (x, 3)
    volume = r(2, 4, 5, 6, 7)
    for x in (volume, volume.detach().contiguous(memory_format=torch.channels_last_3d).requires_grad_(True)):
        yield F.conv3d, (x, r(3, 4, 3, 3, 3), r(3), 1, 1)
        yield F.conv_transpose3d, (x, r(4, 3, 3, 3, 3), r(3), 2)
        yield F.batch_norm, (x, r(4, grad=False), r(4, grad=False), r(4), r(4), True)
        for pool in (F.max_pool3d, F.avg_pool3d, F.adaptive_avg_pool3d, F.adaptive_max_pool3d):
            yield pool, (x, 2)
    x2 = r(8, 6)
    yield F.batch_norm, (x2, r(6, grad=False), r(6, grad=False), r(6), r(6), True)
    yield F.batch_norm, (x2.detach().bfloat16().requires_grad_(True), r(6, grad=False), r(6, grad=False), r(6), r(6), True)
    index = lambda *sizes, below=5: torch.arange(int(torch.tensor(sizes).prod()), device=device).view(sizes) % below
    for dtype in (torch.float32, torch.bfloat16):
        table = r(10, 6).detach().to(dtype).requires_grad_(True)
        for ids in (index(3, 4), index(4, 3).t(), index(3, 4).int(), index(2, 0)):
            yield F.embedding, (ids, table, 1)
            yield F.embedding, (ids, table)
        for mode in ("sum", "mean", "max"):
            yield (lambda i, w, mode=mode: F.embedding_bag(i, w, mode=mode)), (index(3, 4), table)
            yield (lambda i, w, o, mode=mode: F.embedding_bag(i, w, o, mode=mode)), (index(7), table, index(3))
        yield (lambda i, w, p: F.embedding_bag(i, w, mode="sum", per_sample_weights=p)), (index(3, 4), table, r(3, 4).detach().to(dtype).requires_grad_(True))
    x3 = r(4, 5, 6)
    for x in (x3, x3.detach().transpose(0, 2).contiguous().transpose(0, 2).requires_grad_(True)):
        yield (lambda x, i: x[i]), (x, index(3, below=4))
        yield (lambda x, i: x[:, i]), (x, index(2, 3))
        yield (lambda x, i: x[i, :, i]), (x, index(3, below=4))
        yield (lambda x, i: x[..., i]), (x, index(3))
        yield (lambda x, i: x[i.view(3, 1), i]), (x, index(3, below=4))
        yield (lambda x, i: x[:, i.view(3, 1), i]), (x, index(3, below=4))
        yield (lambda x, i: x.index_select(1, i)), (x, index(3))
        yield (lambda x, i: x.gather(1, i)), (x, index(4, 2, 6))
        yield (lambda x, i: x.take(i)), (x, index(3, 2))
        yield (lambda x, i: x.take_along_dim(i, 1)), (x, index(4, 2, 6))
        yield (lambda x, i: x.scatter(1, i, x)), (x, index(4, 2, 6))
        yield (lambda x, i: x.scatter(1, i, 2.0)), (x, index(4, 2, 6))
        yield (lambda x, i: x.scatter_add(1, i, x)), (x, index(4, 2, 6))
        yield (lambda x, i: x.scatter_reduce(1, i, x, "amax")), (x, index(4, 2, 6))
        yield (lambda x, i: x.index_add(1, i, x[:, :3])), (x, index(3))
        yield (lambda x, i: x.index_copy(1, i, x[:, :3])), (x, index(3))
        yield (lambda x, i: x.index_fill(1, i, 1.0)), (x, index(3))
        yield (lambda x, i: x.index_put((i,), x[:3])), (x, index(3, below=4))
        yield (lambda x: x.masked_fill(x > 0.5, 0.0)), (x,)
        yield (lambda x: x.masked_scatter(x > 0.5, x * 2)), (x,)
        yield (lambda x: torch.where(x > 0.5, x, 0.0)), (x,)
        yield (lambda x: torch.cdist(x, x)), (x,)
        yield (lambda x: torch.einsum("abc,dbc->ad", x, x)), (x,)
        yield (lambda x: x.std(1) + x.var(1) + x.norm(dim=1) + x.amax(1) + x.logsumexp(1)), (x,)
        yield (lambda x: F.normalize(x)), (x,)
        yield (lambda x: F.cosine_similarity(x, x.flip(0))), (x,)
        yield (lambda x: x.roll(1, 0) + x.tril() + x.rot90(2, (0, 1))), (x,)
        for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.kl_div, F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
            for reduction in ("mean", "sum", "none"):
                yield (lambda x, loss=loss, reduction=reduction: loss(x, x.detach() * 0.5, reduction=reduction)), (x,)
        for activation in (F.relu, F.gelu, F.silu, F.mish, F.elu, F.selu, F.celu, F.leaky_relu, F.hardswish, F.hardsigmoid, F.hardtanh, F.relu6, F.softplus,
                           F.softsign, F.logsigmoid, F.sigmoid, F.tanh, F.glu, F.hardshrink, F.softshrink, F.threshold):
            if activation in (F.threshold,):
                yield (lambda x: F.threshold(x, 0.1, 0.0)), (x,)
            else:
                yield activation, (x,)
                yield activation, (x.detach().bfloat16().requires_grad_(True),)
    lengths = torch.tensor([7, 6])
    log_probs = F.log_softmax(r(8, 2, 5), -1).detach().requires_grad_(True)
    yield F.ctc_loss, (log_probs, index(2, 3, below=4) + 1, lengths, torch.tensor([3, 2]))
    yield (lambda p: F.ctc_loss(p, index(2, 3, below=4) + 1, [7, 6], [3, 2])), (log_probs,)
    square = (r(3, 4, 4).detach() + 4 * torch.eye(4, device=device)).requires_grad_(True)
    positive = (square.detach() @ square.detach().mT).requires_grad_(True)
    for function in (torch.linalg.inv, torch.linalg.det, torch.linalg.slogdet, torch.linalg.qr, torch.linalg.svd, torch.linalg.svdvals, torch.matrix_exp,
                     lambda x: torch.linalg.solve(x, x), lambda x: torch.linalg.lu_factor(x)[0], torch.linalg.pinv):
        yield function, (square,)
    for function in (torch.linalg.cholesky, torch.linalg.eigh, lambda x: torch.cholesky_inverse(x), lambda x: torch.linalg.solve_triangular(x, x, upper=False)):
        yield function, (positive,)
    yield (lambda x: torch.fft.fft(x).abs()), (x3,)
    yield (lambda x: torch.fft.rfft2(x).abs()), (x3,)
    yield (lambda x: torch.fft.irfft(torch.fft.rfft(x))), (x3,)
    yield (lambda x: torch.stft(x, 8, return_complex=True).abs()), (r(2, 40),)
    attention_layer = nn.MultiheadAttention(16, 4, batch_first=True).to(device)
    yield (lambda x: attention_layer(x, x, x)[0]), (r(2, 5, 16),)
    cells = [nn.LSTMCell(6, 5), nn.GRUCell(6, 5), nn.RNNCell(6, 5)]
    for cell in cells:
        cell.to(device)
        yield (lambda x, cell=cell: cell(x)), (r(3, 6),)
    for kind in ("LSTM", "GRU", "RNN"):
        for options in ({}, {"bidirectional": True}, {"num_layers": 2}, {"bias": False}):
            layer = getattr(nn, kind)(6, 5, **options).to(device)
            yield (lambda x, *p, layer=layer: layer(x)[0]), (r(7, 3, 6),)


def direct(device):
    """Calls of ATen that no sample makes: archives hold them, or a setting of the process."""
    aten = torch.ops.aten
    r = lambda *sizes, dtype=torch.float32: torch.rand(*sizes, device=device).to(dtype)
    order = lambda x: x.contiguous(memory_format=torch.channels_last)
    ids = torch.arange(7, device=device) % 5
    for x in (r(2, 6, 9, 8), order(r(2, 6, 9, 8)), r(2, 6, 9, 8, dtype=torch.bfloat16), r(2, 6, 7)):
        c = lambda: r(6, dtype=x.dtype)
        k, one = r(4, 6, *[3] * (x.dim() - 2), dtype=x.dtype), [1] * (x.dim() - 2)
        yield aten._convolution.default, (x, k, None, one, one, one, False, [0] * len(one), 1, False, False, True, True)
        yield aten._convolution.default, (x, k.transpose(0, 1).contiguous(), None, one, one, one, True, [0] * len(one), 1, False, False, True, True)
        yield aten._batch_norm_with_update.default, (x, c(), c(), c(), c(), 0.1, 1e-5)
        yield aten._batch_norm_no_update.default, (x, c(), c(), c(), c(), 0.1, 1e-5)
        yield aten._native_batch_norm_legit.no_stats, (x, c(), c(), True, 0.1, 1e-5)
        for training in (True, False):
            yield aten._native_batch_norm_legit.default, (x, c(), c(), c(), c(), training, 0.1, 1e-5)
            yield aten.native_batch_norm.default, (x, c(), c(), c(), c(), training, 0.1, 1e-5)
    for offsets, last in ((torch.tensor([0, 2, 4], device=device), False), (torch.tensor([0, 3, 7], device=device), True)):
        for mode in (0, 1, 2):
            yield aten._embedding_bag.default, (r(10, 6), ids, offsets, False, mode, False, None, last, -1)
            yield aten._embedding_bag_forward_only.default, (r(10, 6), ids, offsets, False, mode, False, None, last, -1)
    bag = aten._embedding_bag.default(r(10, 6), ids, torch.tensor([0, 2, 4], device=device), False, 1)
    yield aten._embedding_bag_dense_backward.default, (r(3, 6), ids, bag[1], bag[2], bag[3], 10, False, 1, None, -1)
    number = torch.tensor(2.0, device=device)
    for dtype in (None, torch.int64):
        yield aten.linspace.Scalar_Tensor, (0, number, 5), dict(dtype=dtype, device=device)
        yield aten.linspace.Tensor_Scalar, (number, 3, 5), dict(dtype=dtype, device=device)
        yield aten.logspace.Scalar_Tensor, (0, number, 5), dict(dtype=dtype, device=device)
        yield aten.logspace.Tensor_Scalar, (number, 3, 5), dict(dtype=dtype, device=device)
    yield aten.repeat_interleave.Tensor, (ids,), dict(output_size=int(ids.sum()))
    yield aten.nonzero_static.default, (r(3, 4),), dict(size=5)
    for x in (r(4, 6), r(6, 4).t(), order(r(2, 3, 4, 5)), r(4, 6, dtype=torch.bfloat16)):
        yield aten.native_dropout.default, (x, 0.3, True)
        if device == "cpu":
            yield aten.native_dropout.default, (x, 0.3, False)
        for function in (aten._standard_gamma.default, aten._sample_dirichlet.default):
            if x.dtype == torch.float32:
                yield function, (x,)
        if x.dtype == torch.float32:
            yield aten._standard_gamma_grad.default, (x, x)
            yield aten._dirichlet_grad.default, (x, x, x)
            yield aten.binomial.default, (torch.ones_like(x), x)
            yield aten.fake_quantize_per_tensor_affine_cachemask.default, (x, 0.1, 0, 0, 255)
            scale, zero, on = torch.ones(1, device=device), torch.zeros(1, dtype=torch.int32, device=device), torch.ones(1, dtype=torch.int64, device=device)
            yield aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default, (x, scale, zero, on, 0, 255)
            scales = torch.ones(x.shape[1], device=device)
            yield aten.fake_quantize_per_channel_affine_cachemask.default, (x, scales, torch.zeros_like(scales, dtype=torch.int32), 1, 0, 255)
            yield aten._fake_quantize_learnable_per_tensor_affine.default, (x, scale, scale * 0, 0, 255, 1.0)
            yield aten._fake_quantize_learnable_per_tensor_affine_backward.default, (x, x, scale, scale * 0, 0, 255, 1.0)
            yield aten._fake_quantize_learnable_per_channel_affine.default, (x, scales, scales * 0, 1, 0, 255, 1.0)
            yield aten._fake_quantize_learnable_per_channel_affine_backward.default, (x, x, scales, scales * 0, 1, 0, 255, 1.0)
        yield aten._aminmax.default, (x,)
        yield aten._aminmax.dim, (x, 1)
        yield aten._aminmax.dim, (x, 0, True)
        yield aten.remainder.Scalar_Tensor, (3, x)
        yield aten.remainder.Scalar_Tensor, (3.5, x)
        yield aten.bucketize.Scalar, (0.5, x.float().flatten().sort()[0])
    for x in (ids.view(7, 1), ids.view(1, 7).expand(2, 7)):
        for function in (aten.__lshift__, aten.__rshift__):
            yield function.Tensor, (x, ids)
            yield function.Scalar, (x, 1)
        yield aten.remainder.Scalar_Tensor, (3, x + 1)
        yield aten.remainder.Scalar_Tensor, (3.5, x)
    yield aten._linalg_eigvals.default, (r(2, 4, 4),)
    for mask_type, mask in ((0, torch.zeros(4, 4, dtype=torch.bool, device=device)), (2, torch.zeros(2, 3, 4, 4, dtype=torch.bool, device=device))):
        for x in (r(2, 3, 4, 4), r(2, 4, 3, 4).transpose(1, 2)):
            yield aten._masked_softmax.default, (x, mask, -1, mask_type)
            yield aten._masked_softmax_backward.default, (x, x, mask, -1)
    eight = torch.ones(32, 32, dtype=torch.int8, device=device)
    yield aten._int_mm.default, (eight, eight.t())
    if device != "cpu":
        a, b = r(5, 8, dtype=torch.bfloat16), r(7, 8, dtype=torch.bfloat16).t()
        yield aten.mm.dtype, (a, b, torch.float32)
        yield aten.addmm.dtype, (r(5, 7), a, b, torch.float32)
        yield aten.bmm.dtype, (a[None], b[None], torch.float32)
        yield aten.baddbmm.dtype, (r(1, 5, 7), a[None], b[None], torch.float32)
        yield aten._fused_dropout.default, (r(4, 6), 0.3)
        yield aten._masked_scale.default, (r(4, 6), torch.ones(4, 6, dtype=torch.uint8, device=device), 2.0)
        for dtype in (torch.float16, torch.bfloat16):
            for shape in ((2, 8, 4, 4), (8, 64, 14, 14), (4, 256, 28, 28), (32, 512, 7, 7)):
                x = order(r(*shape, dtype=dtype))
                c = lambda: r(shape[1])
                yield aten.cudnn_batch_norm.default, (x, c(), c(), c(), c(), True, 0.1, 1e-5)


def weight_norms(device):
    for dtype in (torch.float32, torch.bfloat16):
        for sizes in ((4, 6), (4, 6, 3), (4, 6, 3, 3)):
            for dim in (0, len(sizes) - 1):
                v = torch.rand(*sizes, device=device).to(dtype)
                for x in (v, v.transpose(0, 1).contiguous().transpose(0, 1)):
                    g = torch.rand(*[n if d == dim else 1 for d, n in enumerate(sizes)], device=device).to(dtype)
                    yield (lambda v, g, dim=dim: torch._weight_norm(v, g, dim)), (x.requires_grad_(True), g.requires_grad_(True))


def recurrent_reserves(device):
    """cuDNN's layers in many sizes: what their reserve depends on."""
    for kind in ("LSTM", "GRU", "RNN"):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for hidden, inputs in ((5, 6), (64, 32), (128, 128)):
                for layers, both, dropout in ((1, False, 0.0), (2, True, 0.0), (3, True, 0.3), (3, False, 0.3)):
                    layer = getattr(nn, kind)(inputs, hidden, layers, bidirectional=both, dropout=dropout).to(device, dtype)
                    for time, batch in ((7, 3), (35, 20)):
                        yield (lambda x, *p, layer=layer: layer(x)[0]), (torch.rand(time, batch, inputs, device=device, dtype=dtype, requires_grad=True),)
                    layer.eval()
                    yield (lambda x, *p, layer=layer: layer(x)[0]), (torch.rand(7, 3, inputs, device=device, dtype=dtype, requires_grad=True),)


def calls(recorder, run):
    if recorder.device == "cuda":
        recorder.every = ("aten::_cudnn_rnn", "aten::cudnn_batch_norm")
    with torch.no_grad():
        for number, (function, arguments, *options) in enumerate(direct(recorder.device)):
            try:
                with recorder:
                    function(*arguments, **(options[0] if options else {}))
            except Exception as error:
                recorder.skipped[f"direct {number} {function}: {type(error).__name__}: {str(error)[:160]}"] += 1
    for source in (layers, attention, weight_norms) + ((recurrent_reserves,) if recorder.device == "cuda" else ()):
        for number, (function, arguments) in enumerate(source(recorder.device)):
            for tangent in ("like", "contiguous")[: 1 if source is recurrent_reserves else 2]:
                try:
                    run(recorder, function, arguments, {}, tangent)
                except Exception as error:
                    recorder.skipped[f"{source.__name__} {number}: {type(error).__name__}: {str(error)[:160]}"] += 1
                    torch._disable_functionalization()
        print(source.__name__, len(recorder.lines), file=sys.stderr, flush=True)
