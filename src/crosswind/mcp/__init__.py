"""The model context protocol: perturbed tools for clients that speak it. Needs no SDK, and no network but its own."""
