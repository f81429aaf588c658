"""Attention-free sequence operators for PyTorch: short convolutions, LightConv,
DynamicConv, TaLK and average attention.

- `seqconv_torch.ops`: functions on tensors, with gradients, and their one-step forms.
- `seqconv_torch.nn`: the same as `torch.nn.Module`s that own their parameters.
- `seqconv_torch.ModuleState`: what all of these modules within a model remember of streams.
- `seqconv_torch.convert`: weights of other implementations.
- `seqconv_torch.causal_conv1d`, `.fla`, `.dynamic_conv1d` and `.jet_nemotron`: short
  convolutions under the names, and in the layouts, of other packages.

The letters of shapes are the same everywhere: B batch, T time, C channels,
H heads of R = C/H neighbouring channels, K kernel width, N rows of a decoder.
Tensors are [B, T, C], time in the middle.
"""

from seqconv_torch import causal_conv1d, convert, dynamic_conv1d, fla, jet_nemotron, nn, ops
from seqconv_torch._build import VERSION as __version__
from seqconv_torch._module_state import ModuleState
from seqconv_torch.causal_conv1d import (
    causal_conv1d_fn,
    causal_conv1d_update,
    causal_conv1d_varlen_states,
)
from seqconv_torch.convert import convert_lightconv_weight
from seqconv_torch.dynamic_conv1d import (
    headwise_dynamic_convolution,
    lowrank_dynamic_convolution,
)
from seqconv_torch.fla import ShortConvolution
from seqconv_torch.nn import AverageAttention, DynamicConv, LightConv, ShortConv, TaLKConv
from seqconv_torch.ops import (
    ShortConvState,
    average_initial_state,
    conv_initial_state,
    cumulative_average,
    cumulative_average_step,
    dynamicconv,
    dynamicconv_step,
    lightconv,
    lightconv_step,
    short_conv,
    short_conv_final_state,
    short_conv_step,
    talk,
    talk_initial_state,
    talk_step,
)

__all__ = [
    "AverageAttention",
    "DynamicConv",
    "LightConv",
    "ModuleState",
    "ShortConv",
    "ShortConvState",
    "ShortConvolution",
    "TaLKConv",
    "__version__",
    "average_initial_state",
    "causal_conv1d",
    "causal_conv1d_fn",
    "causal_conv1d_update",
    "causal_conv1d_varlen_states",
    "conv_initial_state",
    "convert",
    "convert_lightconv_weight",
    "cumulative_average",
    "cumulative_average_step",
    "dynamic_conv1d",
    "dynamicconv",
    "dynamicconv_step",
    "fla",
    "headwise_dynamic_convolution",
    "jet_nemotron",
    "lightconv",
    "lightconv_step",
    "lowrank_dynamic_convolution",
    "nn",
    "ops",
    "short_conv",
    "short_conv_final_state",
    "short_conv_step",
    "talk",
    "talk_initial_state",
    "talk_step",
]
