"""Trainers: they minimize one and the same `Objective` over the weights of a network."""
