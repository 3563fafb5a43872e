"""Studies of Li, Li, Risteski, *How Do Transformers Learn Topic Structure* (ICML 2023)."""
