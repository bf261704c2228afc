"""Samples a posterior by Hamiltonian Monte Carlo, NUTS and random walks."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

tfd = tfp.distributions
x = np.linspace(-2.0, 2.0, 20).astype("float32")[:, None]
y = (x[:, 0] > 0.3).astype("float32")


def log_density(weight, bias):
    likelihood = tfd.Bernoulli(logits=x @ weight[:, None] + bias).log_prob(y[:, None])
    prior = tfd.Normal(0.0, 2.0)
    return (
        tf.reduce_sum(likelihood)
        + tf.reduce_sum(prior.log_prob(weight))
        + prior.log_prob(bias)
    )


@tf.function
def hamiltonian():
    kernel = tfp.mcmc.HamiltonianMonteCarlo(log_density, 0.1, 3)
    kernel = tfp.mcmc.SimpleStepSizeAdaptation(kernel, 10)
    return tfp.mcmc.sample_chain(
        20,
        [tf.zeros([1]), tf.zeros([])],
        kernel=kernel,
        num_burnin_steps=10,
        trace_fn=lambda _, results: results.inner_results.is_accepted,
        seed=(1, 2),
    )


@tf.function
def no_u_turns():
    kernel = tfp.mcmc.NoUTurnSampler(log_density, 0.2, max_tree_depth=4)
    kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(kernel, 5)
    return tfp.mcmc.sample_chain(
        10,
        [tf.zeros([1]), tf.zeros([])],
        kernel=kernel,
        num_burnin_steps=5,
        trace_fn=lambda _, results: results.new_step_size,
        seed=(3, 4),
    )


@tf.function
def walk():
    kernel = tfp.mcmc.TransformedTransitionKernel(
        tfp.mcmc.RandomWalkMetropolis(lambda s: tfd.Gamma(2.0, 3.0).log_prob(s)),
        tfp.bijectors.Exp(),
    )
    return tfp.mcmc.sample_chain(
        20, tf.ones([4]), kernel=kernel, trace_fn=None, seed=(5, 6)
    )


(weights, biases), accepted = hamiltonian()
print("HMC", f"{np.mean(weights):.2f} {np.mean(biases):.2f}", np.mean(accepted))
(weights, biases), sizes = no_u_turns()
print("NUTS", f"{np.mean(weights):.2f} {np.mean(biases):.2f}", f"{sizes[-1]:.3f}")
states = walk()
print("walk", f"{np.mean(states):.3f}")
# With a chain of one state and a few more, an R-hat and a sample size exist.
print("R-hat", f"{tfp.mcmc.potential_scale_reduction(states):.3f}")
print("size", np.isfinite(tfp.mcmc.effective_sample_size(states)).all())
