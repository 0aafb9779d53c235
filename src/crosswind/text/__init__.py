"""What agents write, read back: values, answers and speech acts in plain words."""
