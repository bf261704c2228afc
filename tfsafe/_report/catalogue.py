"""Measured traps, by the name that fixes them; made by `python -m tests.catalogue`."""

TRAPS = {
    "layers.AdditiveAttention": {
        "Y16": "layers.AdditiveAttention in float16 where a query has no key",
    },
    "layers.Attention": {
        "Y14": "layers.Attention in float16 where a query has no key",
        "Y15": "layers.Attention where a query has no key",
        "Y17": "layers.Attention in float16, q @ k = 65536",
    },
    "layers.BatchNormalization": {
        "Y23": "`BatchNormalization` in training, of 1e4 + [0, 0.01, 0.02, 0.03]",
        "Y57": "one NaN in one batch of `BatchNormalization`, then inference",
        "Y58": "`BatchNormalization` of a batch that is masked as a whole",
        "Y69": "the second gradient of `BatchNormalization`, as in a gradient penalty",
    },
    "layers.Discretization": {
        "Y64": "`Discretization` of NaN",
    },
    "layers.Dot": {
        "Y31": "`Dot(normalize=True)` with a vector of zeros",
    },
    "layers.Embedding": {
        "Y54": "layers.Embedding of an id beyond the table",
    },
    "layers.GRU": {
        "Y50b": "layers.GRU with NaN in its padding",
    },
    "layers.GaussianDropout": {
        "Y53": "layers.GaussianDropout and AlphaDropout with rate=1",
    },
    "layers.GlobalAveragePooling1D": {
        "T10": (
            "fit with Embedding(mask_zero=True), GlobalAveragePooling1D and an empty"
            " text"
        ),
        "Y01": "layers.GlobalAveragePooling1D with a mask that is all False",
        "Y02": (
            "layers.GlobalAveragePooling1D of 1000 times 100 in float16, with a mask"
        ),
    },
    "layers.GlobalMaxPooling1D": {
        "Y65": (
            "layers.GlobalMaxPooling1D, AveragePooling1D and MaxPooling1D with a mask"
        ),
    },
    "layers.GroupNormalization": {
        "Y22": "`GroupNormalization` of 1e4 + [0, 0.01, 0.02, 0.03]",
        "Y68": "the second gradient of `GroupNormalization`, as in a gradient penalty",
    },
    "layers.LSTM": {
        "Y50a": "layers.LSTM with NaN in its padding",
        "Y66": "recurrent and pooling layers on a sequence without a step",
    },
    "layers.LayerNormalization": {
        "Y20": "`LayerNormalization` of 1e4 + [0, 0.01, 0.02, 0.03]",
        "Y26": "`LayerNormalization(rms_scaling=True)` of [5, 5, 5]",
        "Y67": "the second gradient of `LayerNormalization`, as in a gradient penalty",
    },
    "layers.Masking": {
        "Y04": "layers.Masking(mask_value=nan)",
    },
    "layers.MultiHeadAttention": {
        "Y10": "layers.MultiHeadAttention where a query has no key",
        "Y10b": (
            "layers.MultiHeadAttention averages the padding where a query has no key"
        ),
        "Y12": "layers.MultiHeadAttention in float16 where a query has no key",
        "Y13": "layers.MultiHeadAttention with NaN in a masked key and value",
    },
    "layers.Normalization": {
        "Y55": "`Normalization.adapt` on a constant, a NaN and time stamps",
        "Y56": "`Normalization` of a mean of 1e5 under mixed_float16",
    },
    "layers.RMSNormalization": {
        "Y27": "`RMSNormalization` of [1e20, 1e20]",
    },
    "layers.STFTSpectrogram": {
        "Y42": "`STFTSpectrogram(mode='angle')` of silence",
    },
    "layers.SimpleRNN": {
        "Y50c": "layers.SimpleRNN with NaN in its padding",
    },
    "layers.SpectralNormalization": {
        "Y60": "`SpectralNormalization` of a kernel of 1e-25",
        "Y61": "the gradient in the kernel of a `SpectralNormalization`",
    },
    "layers.UnitNormalization": {
        "Y29": "`UnitNormalization` of a row of zeros",
        "Y30": "`UnitNormalization` of a row of zeros in float16",
    },
    "losses.BinaryCrossentropy": {
        "L01": "BinaryCrossentropy()(1, tf.sigmoid(-20.))",
        "L05": "BinaryCrossentropy()(1, bfloat16 sigmoid(-20.))",
        "L05b": "BinaryCrossentropy()(0, float16 sigmoid(9.))",
        "L62": "BinaryCrossentropy(from_logits=True)(0, -inf)",
        "L95": "BinaryCrossentropy()(1, -3.), from_logits forgotten",
    },
    "losses.BinaryFocalCrossentropy": {
        "L11": "BinaryFocalCrossentropy(gamma=0.5)(1, sigmoid(40.))",
        "L12": "BinaryFocalCrossentropy(gamma=0)(1, sigmoid(40.))",
    },
    "losses.CTC": {
        "L90": "keras.losses.CTC, labels that do not fit into the frames",
        "L92": "keras.losses.CTC, a class with logit -inf",
    },
    "losses.CategoricalCrossentropy": {
        "L04": "CategoricalCrossentropy() of a float16 softmax of [0, 20], class 0",
        "L06": "CategoricalCrossentropy() of Reshape(softmax([0., 200.])), class 0",
        "L06b": "CategoricalCrossentropy() of Softmax()(z, mask), class 0",
        "L60": "CategoricalCrossentropy(from_logits=True) with a logit of -inf",
        "L64": "CategoricalCrossentropy() of a row of zeros, labels and predictions",
        "L65": "CategoricalCrossentropy(from_logits=True) of a row of zero labels",
        "L65b": "CategoricalCrossentropy(from_logits=True) of labels [0.5, 0]",
        "L94": "CategoricalCrossentropy() of logits [-1, 1], from_logits forgotten",
    },
    "losses.CategoricalFocalCrossentropy": {
        "L13": "CategoricalFocalCrossentropy(from_logits=True) at [-100, 100], class 0",
    },
    "losses.CategoricalGeneralizedCrossEntropy": {
        "L55": "CategoricalGeneralizedCrossEntropy() of a class of probability 0",
    },
    "losses.CategoricalHinge": {
        "L63": "keras.losses.CategoricalHinge of a logit of -inf",
    },
    "losses.CosineSimilarity": {
        "L40": "keras.losses.CosineSimilarity of a zero vector",
        "L41": "keras.losses.CosineSimilarity at length 1e-20",
        "L42": "keras.losses.CosineSimilarity at length 1e20",
    },
    "losses.Dice": {
        "L50": "keras.losses.Dice, no label and nothing predicted",
        "L51": "keras.losses.Dice, no label and 0.5 predicted",
    },
    "losses.KLDivergence": {
        "L20": "keras.losses.KLDivergence on the softmax of [0, 200]",
        "L21": "keras.losses.KLDivergence on 100,000 equal probabilities",
    },
    "losses.LogCosh": {
        "L29": "keras.losses.LogCosh of an error of 1e-4",
    },
    "losses.MeanAbsolutePercentageError": {
        "L28": "keras.losses.MeanAbsolutePercentageError of a target of 0",
    },
    "losses.MeanSquaredError": {
        "L70": "keras.losses.MeanSquaredError, a NaN target with weight 0",
        "L71": "keras.losses.MeanSquaredError, a NaN target under a Keras mask",
        "L74": "keras.losses.MeanSquaredError, an overflow with weight 0",
        "L75": "keras.losses.MeanSquaredError in float16, 90,000 masked steps",
        "L76": "keras.losses.MeanSquaredError in float16, 90,000 steps",
        "L77": "keras.losses.MeanSquaredError of an empty batch",
    },
    "losses.MeanSquaredLogarithmicError": {
        "L26": "keras.losses.MeanSquaredLogarithmicError of 2e-5 and 1e-5",
        "L27": "keras.losses.MeanSquaredLogarithmicError of 1 and -0.5",
    },
    "losses.Poisson": {
        "L22": "keras.losses.Poisson on exp(-100) for a count of 5",
        "L25": "keras.losses.Poisson on a rate of -0.1",
        "L93": "every class of keras.losses, on six simple inputs",
    },
    "losses.SparseCategoricalCrossentropy": {
        "L03": "SparseCategoricalCrossentropy(ignore_class=-1)(0, softmax([0., 200.]))",
        "L69": "SparseCategoricalCrossentropy() of a label of -1: an error, or all NaN",
    },
    "losses.Tversky": {
        "L52": "keras.losses.Tversky, no label and 0.5 predicted",
    },
    "losses.binary_crossentropy": {
        "L07": "binary_crossentropy(1, p) at a float16 p of 1",
        "L08": "binary_crossentropy(1, p) at a bfloat16 p of 1",
    },
    "metrics.AUC": {
        "M08": "keras.metrics.AUC, BinaryAccuracy, F1Score of a NaN prediction",
    },
    "metrics.F1Score": {
        "M11": "keras.metrics.F1Score, FBetaScore, R2Score before any update",
    },
    "metrics.LogCoshError": {
        "M10": "keras.metrics.LogCoshError, Poisson, MeanAbsolutePercentageError",
    },
    "metrics.Mean": {
        "M01": "keras.metrics.Mean, one NaN among good values",
        "M02": "keras.metrics.Mean and MeanSquaredError, NaN with weight 0",
        "M09": "keras.metrics.Mean beyond 2^24 values",
    },
    "metrics.PearsonCorrelation": {
        "M06": "keras.metrics.PearsonCorrelation of a constant row",
    },
    "metrics.R2Score": {
        "M04": "keras.metrics.R2Score of constant labels",
        "M05": "keras.metrics.R2Score of labels around 10,000",
    },
    "ops.acosh": {
        "O124": "tf.acosh(1 + ...), the hyperbolic distance of equal points",
    },
    "ops.angle": {
        "O126": "tf.math.angle(0j)",
    },
    "ops.angle_between": {
        "O120": "tf.acos of the cosine of a vector with itself, rounded above 1",
        "O121": "tf.acos of the cosine of a vector with itself, exactly 1",
    },
    "ops.atan2": {
        "O122": "tf.math.atan2(0, 0)",
        "O123": "tf.where(r > 0, tf.math.atan2(y, x), 0) at the origin",
    },
    "ops.binary_crossentropy": {
        "O181": "tf.nn.sigmoid_cross_entropy_with_logits with a logit of -inf",
    },
    "ops.categorical_crossentropy": {
        "O180": "tf.nn.softmax_cross_entropy_with_logits with a logit of -inf",
    },
    "ops.cdist": {
        "O75": "keras.ops.cdist of a batch against itself",
        "O76": "tf.sqrt(|a|**2 + |b|**2 - 2 a b) of a vector and itself",
    },
    "ops.cholesky": {
        "O152": "tf.linalg.cholesky of a semidefinite matrix",
    },
    "ops.clip_by_global_norm": {
        "O110": "tf.clip_by_global_norm of 1e20",
    },
    "ops.clip_by_norm": {
        "O109": "tf.clip_by_norm of 1e20",
    },
    "ops.cumprod": {
        "O87": "tf.math.cumprod with a factor of 0",
    },
    "ops.cumsum": {
        "O91": "tf.cumsum of 1000 ones in bfloat16",
    },
    "ops.cumulative_logsumexp": {
        "O86": "tf.math.cumulative_logsumexp(z) with a first entry of -inf",
    },
    "ops.det": {
        "O150": "tf.linalg.det of a singular matrix",
    },
    "ops.distance": {
        "O74": "tf.sqrt(tf.reduce_sum((a - b)**2)) of equal points",
    },
    "ops.divide": {
        "L85": "GIoU by hand of two boxes of size 0",
        "O42": "tf.where(y != 0, x / y, 0) at y = 0",
        "O46": "x / tf.norm(x) at x = 0, its NaN replaced by 0 afterwards",
    },
    "ops.elu": {
        "O133": "tf.nn.elu(-1e-8)",
    },
    "ops.entropy": {
        "O21": "-tf.reduce_sum(p * tf.math.log(p)) for a probability that underflowed",
        "O22": (
            "-tf.reduce_sum(tf.nn.softmax(z) * tf.nn.log_softmax(z)) with a logit of"
            " -inf"
        ),
    },
    "ops.erfinv": {
        "O130": "tf.math.erfinv(x) for x = 1e-6",
        "S-bf16-erfinv": "tf.math.erfinv from 1e-30 to 1 in bfloat16",
        "S-f16-erfinv": "tf.math.erfinv from 1e-30 to 1 in float16",
        "S-f32-erfinv": "tf.math.erfinv from 1e-30 to 1 in float32",
    },
    "ops.exp": {
        "L83": "a sample mu + exp(lv / 2) * eps, exp(100) with eps 0",
        "O142": "tf.minimum(r * a, tf.clip_by_value(r, 0.8, 1.2) * a), r = tf.exp(100)",
    },
    "ops.expm1": {
        "O06": "tf.exp(x) - 1 for x = 1e-8",
    },
    "ops.hypot": {
        "O78": "keras.ops.hypot(3, 3)",
    },
    "ops.inv": {
        "O151": "tf.linalg.inv of a singular matrix",
    },
    "ops.l2_normalize": {
        "O100": "tf.math.l2_normalize of a zero vector",
        "O101": "keras.ops.normalize of a zero vector",
        "O102": "tf.math.l2_normalize of a zero vector in float16",
        "O103": "keras.ops.normalize of a zero vector in float16",
        "O104": "tf.math.l2_normalize of 1e-20",
        "O105": "tf.math.l2_normalize of 1e20",
        "O106": "tf.math.l2_normalize of 300 in float16",
        "Y34": "`keras.ops.normalize` of zeros, as in the power iteration",
    },
    "ops.log": {
        "L86": "log of a product of 200 probabilities of 0.5",
        "O45": "tf.boolean_mask(tf.math.log(x), x > 0)",
    },
    "ops.log1mexp": {
        "O07": "tf.math.log(1 - tf.exp(x)) for x = -1e-10",
    },
    "ops.log1p": {
        "O05": "tf.math.log(1 + x) for x = 1e-8",
    },
    "ops.log_add_exp": {
        "O10": "tf.math.log(tf.exp(a) + tf.exp(b)) for a = b = 100",
        "O11": "the slopes of keras.ops.logaddexp(a, b) at a = b",
        "O13": "keras.ops.logaddexp(a, b) for a = b = -inf",
    },
    "ops.log_cosh": {
        "O14": "tf.math.log(tf.cosh(x)) for x = 100",
        "O128": "tf.atanh(tf.tanh(x)) in the density of a squashed normal, for x = 10",
        "O129": "tf.math.log(1 - tf.tanh(x)**2) for x = 10",
    },
    "ops.log_erfc": {
        "O17": (
            "tf.math.log(tf.math.erfc(x)), the tail of the normal distribution, for x"
            " = 10.5"
        ),
    },
    "ops.log_expm1": {
        "O08": "tf.math.log(tf.exp(x) - 1), the inverse of softplus, for x = 100",
    },
    "ops.log_pochhammer": {
        "O18": "tf.math.lgamma(x + y) - tf.math.lgamma(x) for x = 1e8 and y = 3",
    },
    "ops.log_sigmoid": {
        "O02": "tf.math.log(tf.sigmoid(z)) for z = -200",
        "O03": "tf.math.log(1 - tf.sigmoid(z)) for z = 20",
        "O04": "tf.math.log(p / (1 - p)) with p = tf.sigmoid(z) for z = 20",
        "O09": "tf.math.log(1 + tf.exp(x)) for x = 100",
        "O140": (
            "-tf.math.log(tf.clip_by_value(tf.sigmoid(z), 1e-7, 1 - 1e-7)) for z = -20"
        ),
        "O141": "-tf.math.log(tf.sigmoid(z) + 1e-7) for z = -25",
    },
    "ops.log_softmax": {
        "L45": "-log(exp(s / t) / sum(exp(s / t))) at t = 0.01, s = [1, 0.5]",
        "O01": "tf.math.log(tf.nn.softmax(z)) for a logit 200 below the largest",
        "O84": "tf.nn.log_softmax of nothing but -inf",
    },
    "ops.log_sub_exp": {
        "O15": "tf.math.log(tf.exp(a) - tf.exp(b)) for a = 100.5 and b = 100",
    },
    "ops.logsumexp": {
        "L81": "mixture likelihood by hand, 20 deviations away",
        "O82": "tf.reduce_logsumexp of nothing but -inf",
    },
    "ops.lstsq": {
        "O164": "tf.linalg.lstsq of a matrix that does not have full rank",
    },
    "ops.mean": {
        "M12": "keras.ops.average with weights that sum to 0",
        "O50": "tf.reduce_mean(tf.boolean_mask(x, mask)) where nothing is kept",
        "O51": "tf.reduce_sum(x * mask) / tf.reduce_sum(mask) where nothing is kept",
        "O89": "tf.reduce_mean of 1000 times 100 in float16",
        "O93": "tf.reduce_mean of an empty tensor",
    },
    "ops.mish": {
        "O174": "keras.activations.mish(-20) in float16",
    },
    "ops.moments": {
        "Y59": "the variance of `keras.ops.moments` of [0, 2000] in bfloat16",
        "Y70": "the second gradient of the variance of `tf.nn.moments`",
    },
    "ops.multiply_no_nan": {
        "L82": "KL term of a VAE, exp(100) with weight 0",
        "O52": "mask * x with a NaN under the mask",
        "O143": "the same with the advantage a = 0",
    },
    "ops.norm": {
        "L46": "triplet loss by tf.norm, anchor and positive the same",
        "O70a": "tf.norm of a zero vector",
        "O70b": "keras.ops.norm of a zero vector",
        "O70c": "tf.math.reduce_euclidean_norm of a zero vector",
        "O70d": "tf.sqrt(tf.reduce_sum(x * x)) of a zero vector",
        "O70e": "tf.norm(x, ord=3) of a zero vector",
        "O70f": "keras.ops.norm(x, ord=3) of a zero vector",
        "O71a": "tf.norm of 1e20, whose square overflows",
        "O71b": "keras.ops.norm of 1e20, whose square overflows",
        "O71c": "tf.math.reduce_euclidean_norm of 1e20, whose square overflows",
        "O72a": "tf.norm of 1e-25, whose square underflows",
        "O72b": "keras.ops.norm of 1e-25, whose square underflows",
        "O72c": "tf.math.reduce_euclidean_norm of 1e-25, whose square underflows",
        "O73a": "tf.norm of 300 in float16",
        "O73b": "keras.ops.norm of 300 in float16",
        "O73c": "tf.math.reduce_euclidean_norm of 300 in float16",
        "O79": "(tf.norm(gradient) - 1)**2 of a saturated critic",
    },
    "ops.normalize": {
        "O107": "tf.linalg.normalize of a zero vector",
    },
    "ops.pow": {
        "O47": "tf.where(x > 0, tf.pow(x, 0.5), 0) at x = 0",
        "O60": "tf.pow(x, 0.0) at x = 0",
        "O61": "second derivative of tf.pow(x, 1.0) at x = 0",
        "O62": "third derivative of tf.pow(x, 2.0) at x = 0",
    },
    "ops.reduce_max": {
        "O146": "tf.reduce_max of NaN and 1",
    },
    "ops.rsqrt": {
        "O48": "tf.where(x > 0, tf.math.rsqrt(x), 0) at x = 0",
    },
    "ops.sigmoid": {
        "O132": "gradient of tf.sigmoid at x = 18",
    },
    "ops.sinc": {
        "O127": "tf.sin(x) / x at x = 0",
    },
    "ops.singular_value_function": {
        "O155": "U S V^T by tf.linalg.svd with equal singular values",
    },
    "ops.slogdet": {
        "O153": "tf.linalg.logdet of a semidefinite matrix",
        "O154": "tf.linalg.slogdet of a singular matrix",
    },
    "ops.softmax": {
        "L84": "tf.nn.softmax(z / 0), a temperature annealed to 0",
        "O16": "tf.exp(z) / tf.reduce_sum(tf.exp(z)) for a logit of 100",
        "O83": "tf.nn.softmax of nothing but -inf",
    },
    "ops.spectral_function": {
        "O158": "V diag(w^-1/2) V^T by tf.linalg.eigh with equal eigenvalues",
    },
    "ops.sqrt": {
        "O41": "tf.where(x > 0, tf.sqrt(x), 0) at x = 0",
        "O43": "mask * tf.sqrt(x) at x = 0 under the mask",
        "O192": "tf.image.per_image_standardization of a constant image",
    },
    "ops.squareplus": {
        "O172": "keras.ops.squareplus(300) in float16",
        "O173": "keras.ops.squareplus(-1e4)",
    },
    "ops.ssim_multiscale": {
        "O190": "tf.image.ssim_multiscale of an image and its negative",
    },
    "ops.std": {
        "O19": "tf.sqrt(tf.reduce_mean(x**2) - tf.reduce_mean(x)**2) for a large mean",
        "O80a": "tf.math.reduce_std of a constant",
        "O80b": "keras.ops.std of a constant",
        "O80c": "tf.sqrt(tf.nn.moments(x)[1]) of a constant",
        "O81": "tf.math.reduce_std of 300 and -300 in float16",
    },
    "ops.tanh": {
        "O131": "gradient of tf.tanh at x = 10",
        "S-bf16": (
            "tanh, sigmoid, elu, selu and squareplus over their range in bfloat16"
        ),
        "S-f16": "tanh, sigmoid, elu, selu and squareplus over their range in float16",
        "S-f32": "tanh, sigmoid, elu, selu and squareplus over their range in float32",
    },
    "ops.unsorted_segment_max": {
        "O94": "tf.math.unsorted_segment_max with an empty segment",
    },
    "ops.where_apply": {
        "L80": "Gaussian likelihood by hand, softplus(-120) for a variance",
        "O40": "tf.where(x > 0, tf.math.log(x), 0) at x = 0",
        "O49": "tf.where(x < 10, tf.exp(x), x) at x = 100",
    },
    "ops.xdivy": {
        "O25": "the slope of tf.math.xdivy(x, y) in x at x = 0",
    },
    "ops.xlog1py": {
        "O24": "the slope of tf.math.xlog1py(x, y) in x at x = 0",
    },
    "ops.xlogy": {
        "O20": "y * tf.math.log(p) for y = 0 and p = 0",
        "O23": "the slope of tf.math.xlogy(x, y) in x at x = 0",
        "O27": "the mixed second derivative of tf.math.xlogy(x, y) at x = 0",
        "O30": (
            "tf.math.multiply_no_nan(tf.math.log(p), mask) for p = 0 under a mask of 0"
        ),
        "O44": "mask * tf.math.log(x) for x = 0 under a mask of 0",
    },
    "regularizers.OrthogonalRegularizer": {
        "Y33": "`OrthogonalRegularizer` of a kernel with a row of zeros",
    },
    "rewriting.stabilize": {
        "O200": "(x - min) / (max - min + 1e-7) of a constant row in a tf.function",
        "O201": "tf.math.log(a - b + 1e-7) for a = b = 64 in a tf.function",
        "O202": "1 / (a - b + 1e-6) for a = b = 64 in a tf.function",
        "O203": (
            "tf.sqrt(E[x * x] - E[x] ** 2 + 1e-6) of a constant row in a tf.function"
        ),
    },
}
