"""Evaluates densities, tails, divergences and samples, with their gradients."""

import tensorflow as tf
import tensorflow_probability as tfp

tfd = tfp.distributions
a = tf.constant([0.7, 1.3, 2.5])
b = tf.constant([1.1, 0.4, 3.0])
x = tf.constant([0.2, 0.5, 0.9])


def show(name, values):
    print(name, *(f"{float(v):.4f}" for v in tf.reshape(values, [-1])))


CONTINUOUS = {
    "Normal": lambda a, b: tfd.Normal(a, b),
    "Gamma": lambda a, b: tfd.Gamma(a, b),
    "InverseGamma": lambda a, b: tfd.InverseGamma(a, b),
    "Beta": lambda a, b: tfd.Beta(a, b),
    "StudentT": lambda a, b: tfd.StudentT(3.0, a, b),
    "Laplace": lambda a, b: tfd.Laplace(a, b),
    "LogNormal": lambda a, b: tfd.LogNormal(a, b),
    "Weibull": lambda a, b: tfd.Weibull(a, b),
    "Gumbel": lambda a, b: tfd.Gumbel(a, b),
    "Kumaraswamy": lambda a, b: tfd.Kumaraswamy(a, b),
    "HalfCauchy": lambda a, b: tfd.HalfCauchy(tf.zeros_like(a), b),
    "TruncatedNormal": lambda a, b: tfd.TruncatedNormal(a, b, 0.0, 2.0),
    "GeneralizedNormal": lambda a, b: tfd.GeneralizedNormal(a, b, 1.5),
}
for name, make in CONTINUOUS.items():

    @tf.function
    def evaluate(a, b, x, make=make):
        with tf.GradientTape() as tape:
            tape.watch([a, b, x])
            made = make(a, b)
            log_prob, log_cdf = made.log_prob(x), made.log_cdf(x)
            total = tf.reduce_sum(log_prob) + tf.reduce_sum(log_cdf)
        return log_prob, log_cdf, tape.gradient(total, [a, b, x])

    log_prob, log_cdf, gradients = evaluate(a, b, x)
    show(f"{name} log_prob", log_prob)
    show(f"{name} log_cdf", log_cdf)
    show(
        f"{name} gradients",
        tf.stack([tf.zeros(3) if g is None else g for g in gradients]),
    )
    show(f"{name} sample", tf.math.is_finite(make(a, b).sample(seed=(1, 2))))

counts = tf.constant([0.0, 1.0, 4.0])
show("Poisson", tfd.Poisson(a).log_prob(counts))
show("NegativeBinomial", tfd.NegativeBinomial(b, logits=a).log_prob(counts))
show("Binomial", tfd.Binomial(5.0, probs=x).log_prob(counts))
show("Bernoulli", tfd.Bernoulli(logits=a * 40.0).log_prob([0, 1, 0]))
show("Categorical", tfd.Categorical(logits=a).log_prob([0, 1, 2]))
show("OneHot", tfd.OneHotCategorical(probs=[1.0, 0.0, 0.0]).entropy())
show("Dirichlet", tfd.Dirichlet(a).log_prob([0.2, 0.3, 0.5]))
show("Multinomial", tfd.Multinomial(3.0, logits=a).log_prob([0.0, 1.0, 2.0]))
scale = tf.linalg.cholesky([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])
show("Gaussian", tfd.MultivariateNormalTriL(a, scale).log_prob(x))
show("Wishart", tfd.WishartTriL(4.0, scale).log_prob(tf.eye(3)))
show("LKJ", tfd.CholeskyLKJ(3, 1.5).log_prob(tf.eye(3)))
mixture = tfd.MixtureSameFamily(tfd.Categorical(logits=a), tfd.Normal(a, b))
show("Mixture", mixture.log_prob(x))
show("ZeroInflated", tfd.Inflated(tfd.Poisson(2.0), 0.3).log_prob(counts))
show("Quantized", tfd.QuantizedDistribution(tfd.Normal(0.0, 1.0)).log_prob(counts))
for one, two in [
    (tfd.Normal(a, b), tfd.Normal(b, a)),
    (tfd.Gamma(a, b), tfd.Gamma(b, a)),
    (tfd.Beta(a, b), tfd.Beta(b, a)),
    (tfd.Bernoulli(probs=x), tfd.Bernoulli(probs=x / 2)),
    (tfd.Categorical(logits=a), tfd.Categorical(logits=b)),
    (tfd.Dirichlet(a), tfd.Dirichlet(b)),
]:
    show(f"KL {type(one).__name__}", tfd.kl_divergence(one, two))
