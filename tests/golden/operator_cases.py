"""Which golden cases of operators there are, and three with their values worked out by hand."""

# One case a line: the rest of its name, and its spec. Letters before numbers
# are sizes: b rows (where it is not said 1, padded 2), t tokens, c channels, h heads,
# k taps, v and n words and rows. Softmax is meant where no norm is named.
CASES = {
    "lightweight_conv": """
        centred k1 h8 c8 t5 b2 bias
        causal k2 h4 c8 t5
        centred k2 h1 c8 t5 bias
        causal k3 h2 c8 t5 b2 bias
        centred k3 h4 c8 t5
        causal k3 h1 c1 t7 b3
        centred k3 h1 c1 t7 b3 bias
        causal k4 h2 c6 t7
        centred k4 h3 c6 t6 b2 bias
        causal k4 h2 c6 t6 padded
        centred k4 h3 c6 t6 padded
        centred k4 h3 c6 t6 leftpadded
        causal k7 h4 c12 t7 bias
        causal k7 h3 c24 t5
        causal k7 h1 c24 t4 bias
        centred k5 h24 c24 t4
        causal k3 h5 c40 t4
        centred k3 h5 c40 t4 bias
        causal k3 h40 c40 t4
        causal k3 h3 c72 t3
        centred k3 h9 c72 t3
        centred k3 h72 c72 t2 none
        causal k3 h2 c34 t4
        centred k3 h17 c34 t4
        causal k3 h1 c17 t4
        centred k3 h2 c130 t1
        causal k15 h2 c8 t5 b2
        centred k15 h2 c8 t5 bias
        causal k31 h2 c4 t5 bias
        centred k31 h2 c4 t5 b2
        centred k127 h1 c2 t8 bias
        centred k31 h2 c4 t24
        centred k64 h1 c2 t40
        causal k7 h2 c8 t1
        centred k7 h2 c8 t1 b2 bias
        causal k5 h2 c8 t6 padded bias
        centred k5 h2 c8 t6 padded bias
        centred k5 h2 c8 t6 b3 padded empty
        causal k5 h2 c8 t6 leftpadded
        centred k5 h2 c8 t6 b3 leftpadded bias
        causal k15 h4 c8 t5 padded
        centred k3 h3 c24 t5 padded bias
        causal k5 h2 c8 t5 none bias
        centred k5 h2 c8 t5 none
        causal k5 h2 c8 t5 b2 sigmoid
        centred k5 h2 c8 t5 tanh
        causal k5 h2 c8 t5 square
        centred k5 h2 c8 t5 b2 abs
        causal k5 h2 c8 t5 l1
        centred k5 h2 c8 t5 l2
        causal k5 h2 c8 t5 b2 abs_l1
        centred k5 h2 c8 t5 abs_l2
        causal k5 h4 c8 t5 drop0.25
        centred k5 h4 c8 t5 b2 drop0.5 bias
        causal k7 h4 c8 t5 padded drop0.1
        centred k3 h2 c8 t5 none drop0.5 padded
        centred k5 h2 c8 t5 leftpadded l2 drop0.25
    """,
    "depthwise_conv": """
        causal k1 c8 t5 b2
        centred k1 c8 t5 bias
        causal k3 c8 t5 bias
        centred k3 c8 t5 b2
        causal k4 c24 t5
        centred k4 c24 t5 bias
        causal k7 c8 t6 padded
        centred k7 c8 t6 leftpadded
        causal k15 c6 t7
        centred k15 c6 t7
        centred k3 c40 t3
    """,
    "dynamic_conv": """
        centred k1 h8 c8 t5 bias
        causal k2 h4 c8 t5 b2
        centred k2 h1 c8 t5 bias
        causal k3 h2 c8 t5 bias
        centred k3 h4 c8 t5 b2
        causal k3 h1 c1 t7
        centred k3 h1 c1 t7 bias
        causal k4 h2 c6 t5 b2
        causal k4 h2 c6 t5 padded
        centred k4 h3 c6 t5 padded
        centred k4 h3 c6 t5 leftpadded
        causal k7 h4 c8 t7 bias
        causal k7 h3 c24 t5
        causal k7 h1 c24 t4 bias
        centred k3 h24 c24 t3
        causal k3 h5 c40 t4
        centred k3 h5 c40 t4 bias
        causal k3 h40 c40 t2
        causal k3 h3 c72 t2
        centred k3 h9 c72 t2
        causal k3 h2 c34 t4
        centred k3 h17 c34 t3
        causal k15 h2 c4 t5
        centred k15 h2 c4 t5 bias
        causal k31 h2 c4 t4 bias
        centred k31 h2 c4 t4
        causal k31 h1 c2 t12
        causal k63 h1 c2 t5
        causal k7 h2 c8 t1
        centred k7 h2 c8 t1 b2 bias
        causal k5 h2 c8 t5 padded bias
        centred k5 h2 c8 t5 padded bias
        centred k5 h2 c8 t5 b3 padded empty
        causal k5 h2 c8 t5 leftpadded
        centred k5 h2 c8 t5 leftpadded bias
        causal k15 h2 c4 t4 padded
        causal k5 h2 c8 t5 none bias
        causal k5 h2 c8 t5 sigmoid
        centred k5 h2 c8 t5 b2 tanh
        causal k5 h2 c8 t5 square
        centred k5 h2 c8 t5 abs
        causal k5 h2 c8 t5 b2 l1
        centred k5 h2 c8 t5 l2
        causal k5 h2 c8 t5 abs_l1
        centred k5 h2 c8 t5 b2 abs_l2
        causal k5 h2 c8 t5 drop0.25
        centred k5 h2 c8 t5 drop0.5 bias
        causal k5 h2 c8 t5 padded drop0.1
        centred k3 h2 c8 t5 leftpadded none drop0.5
    """,
    "dynamic_conv_layer": """
        causal k3 h2 c8 t5 b2
        centred k3 h2 c8 t5 bias linearbias
        causal k4 h4 c8 t5 bias
        centred k4 h4 c8 t5 b2 linearbias
        causal k7 h2 c6 t5 padded
        centred k7 h2 c6 t5 padded linearbias
        centred k5 h2 c6 t5 leftpadded
        causal k3 h2 c24 t3
        causal k15 h1 c4 t5
        centred k5 h2 c8 t1 linearbias
        causal k3 h8 c8 t5 b2 none
        causal k5 h2 c8 t5 drop0.25 linearbias
    """,
    "weight_normalization": """
        n6 k7 none
        n6 k7 softmax
        n6 k7 sigmoid
        n6 k7 tanh
        n6 k7 square
        n6 k7 abs
        n6 k7 l1
        n6 k7 l2
        n6 k7 abs_l1
        n6 k7 abs_l2
        n6 k7 l1 tiny
        n6 k7 l2 tiny
        n6 k7 abs_l1 tiny
        n6 k7 abs_l2 tiny
        n3 k1 softmax
        n20 k4 softmax
    """,
    "cumulative_average": """
        c8 t1 b2
        c6 t9
        c6 t7 b3 padded
        c24 t5
        c40 t4
        c1 t100
    """,
    "average_attention_gate": """
        c6 t1 b2
        c6 t5
        c8 t3
    """,
    "average_attention": """
        c6 t1 b2
        c6 t7
        c6 t7 padded
        c6 t7 ffn10
        c6 t7 ffn7 padded
    """,
    "local_attention": """
        causal k1 h1 c4 t4 b2
        centred k1 h2 c4 t4
        causal k3 h2 c8 t5
        centred k3 h4 c8 t5 b2
        causal k4 h2 c6 t6 padded
        centred k4 h2 c6 t6 padded
        causal k3 h2 c6 t6 leftpadded
        centred k3 h2 c6 t6 leftpadded
        causal k15 h2 c8 t5
        centred k15 h2 c8 t5
        causal k5 h8 c8 t1 b2
        centred k7 h1 c4 t18
    """,
    "talk_conv": """
        centred reach0 ahead0 h8 c8 t5 b2
        causal reach1 h4 c8 t5
        centred reach1 ahead1 h4 c8 t5
        causal reach3 h2 c8 t6 b2
        centred reach3 ahead3 h2 c8 t7
        causal reach3 h1 c1 t7
        centred reach3 ahead2 h1 c1 t7 b2
        centred reach0 ahead5 h3 c6 t7
        causal reach7 h3 c24 t5
        centred reach3 ahead3 h3 c24 t5
        causal reach3 h24 c24 t4
        centred reach2 ahead1 h1 c24 t4
        causal reach3 h5 c40 t4
        centred reach3 ahead3 h5 c40 t4
        centred reach1 ahead3 h40 c40 t2
        causal reach3 h3 c72 t2
        causal reach3 h2 c34 t4
        centred reach3 ahead3 h17 c34 t4
        centred reach2 ahead2 h2 c130 t1
        causal reach31 h2 c4 t6
        centred reach31 ahead31 h2 c4 t6 b2
        causal reach15 h2 c4 t24
        centred reach15 ahead7 h2 c4 t24
        causal reach127 h1 c2 t20
        centred reach63 ahead63 h1 c2 t40
        causal reach3 h2 c8 t1
        centred reach3 ahead3 h2 c8 t1 b2
        causal reach5 h2 c8 t6 padded
        centred reach5 ahead3 h2 c8 t6 padded
        centred reach5 ahead3 h2 c8 t6 b3 padded empty
        causal reach3 h2 c8 t6 leftpadded
        centred reach3 ahead3 h2 c8 t6 leftpadded
        causal reach4 h2 c8 t7 integer
        centred reach4 ahead2 h2 c8 t7 integer
        centred reach4 ahead4 h2 c8 t6 integer padded
        causal reach7 h2 c8 t6 b2 extremes
        centred reach7 ahead3 h2 c8 t7 extremes
        centred reach3 ahead5 h4 c8 t6 extremes padded
        causal reach3 h2 c8 t7 dropped
        centred reach3 ahead3 h2 c8 t6 b2 dropped
        centred reach2 ahead3 h2 c8 t6 dropped padded
        causal reach31 h1 c1 t4001 long
    """,
    "talk_conv_layer": """
        causal reach3 h2 c8 t6 b2
        centred reach3 ahead3 h2 c8 t7
        causal reach1 h1 c8 t1
        centred reach1 ahead1 h1 c8 t1 b2
        causal reach7 h4 c8 t5 padded
        centred reach4 ahead2 h4 c8 t5 padded
        causal reach3 h2 c6 t6 leftpadded
        centred reach3 ahead3 h2 c6 t6 leftpadded
        causal reach15 h8 c24 t4
        causal reach3 h2 c8 t5 drop0.25
        centred reach3 ahead3 h2 c8 t5 drop0.1
    """,
    "adaptive_softmax": """
        bands-6-13-22 factor2 c8 t5
        bands-7-17 factor4 c8 t3
        bands-5-9-14-19 factor2 c9 t5
        bands-6-13-22 factor2 c8 t5 tied tiedproj
        bands-6-13-22 factor2 c8 t5 tied
        bands-6-13-22 factor2 c8 t5 tied tiedproj dim12
        bands-6-13-22 factor2 c8 t6 tail1
        bands-6-13-22 factor2 c8 t6 tail1 ignored
    """,
    "adaptive_input": """
        bands-6-13-22 factor2 c8 t9
        bands-5-15 factor4 c8 dim12 t9
        bands-5-9-14-19 factor2 c10 dim11 t8
    """,
    "label_smoothed_cross_entropy": """
        v11 t5 eps0
        v11 t5 eps0 others
        v11 t5 eps0.1
        v11 t5 eps0.1 others
        v24 t6 eps0.3
        v24 t6 eps0.3 others
        v19 t4 b3 eps0.1
        v2 t4 b3 eps0.2 others
    """,
    "sinusoidal_positions": """
        dim4 t7
        dim16 t7
        dim16 t7 b3 leftpadded
        dim17 t6
        dim30 t5 leftpadded
        dim4 t300 b1
    """,
    "lr_inverse_sqrt": """
        lr0.0005 warmup4000 start0.0000001
        lr0.001 warmup10
    """,
    "lr_cosine": """
        lr1 low0.01 start0.001 warmup16 period24 shrink0.75
        lr0.001 low0.00001 warmup100 period2000
        lr1 low0.01 warmup10 period20 mult1.5 shrink0.5
        lr0.25 low0.01 start0.1 warmup8 period32 mult2
    """,
    "adam": """
        n17 steps5 first0.9 second0.98
        n17 steps5 first0.9 second0.98 decay0.01 changing
        n17 steps5 first0.8 second0.999 eps0.01 decay0.0001
    """,
    "nag": """
        n17 steps5 momentum0.99
        n17 steps5 momentum0.99 changing
        n17 steps5 momentum0.9 decay0.01 changing
    """,
    "clip_grad_norm": """
        max0.1 tensors3
        max25 tensors2
        max0 tensors1
    """,
}

HAND = {
    # Taps 1, 2, 4 over 1 ... 4, and the half of what was two tokens ago less the newest over 10 ... 40.
    ("lightweight_conv", "causal k3 h2 c2 t4 b1 none hand"): (
        {"x": [1, 10, 2, 20, 3, 30, 4, 40], "weight": [1, 2, 4, 0.5, 0, -1], "grad_output": [1] * 8},
        {"y": [4, -10, 10, -20, 17, -25, 24, -30],
         "grad_x": [7, -0.5, 7, -0.5, 6, -1, 4, -1],
         "grad_weight": [3, 6, 10, 30, 60, 100]}),
    # Equal weights: a quarter of up to four tokens, two of them earlier ones.
    ("lightweight_conv", "centred k4 h1 c1 t5 b1 softmax hand"): (
        {"x": [4, 8, 12, 16, 20], "weight": [3] * 4, "grad_output": [1] * 5},
        {"y": [3, 6, 10, 14, 12], "grad_x": [0.75, 1, 1, 0.75, 0.5]}),
    # Windows from t - 1.5 to t + 0.5, over 4: at t = 2 it is (8 / 2 + 16 + 24 + 32 / 2) / 4.
    ("talk_conv", "centred reach2 ahead1 h1 c1 t5 b1 hand"): (
        {"x": [8, 16, 24, 32, 40], "offset_left": [0.75] * 5, "offset_right": [0.5] * 5,
         "grad_output": [1] * 5},
        {"y": [4, 9, 15, 21, 21],
         "grad_offset_left": [0, 0, 4, 8, 12], "grad_offset_right": [4, 6, 8, 10, 0]}),
}
