"""Demonstrations, and models trained on them: SFT, PAFT and GRPO."""
