"""Noise in the observations: learn the clean trajectory with the network, filter, forecast."""

from rbfdiffnet.noise.learn import Trajectory, learn_trajectory

__all__ = ["Trajectory", "learn_trajectory"]
