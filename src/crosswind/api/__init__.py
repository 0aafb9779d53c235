"""What `import crosswind` offers beyond the nouns of the engine: evaluate an agent, play one episode, read runs."""
