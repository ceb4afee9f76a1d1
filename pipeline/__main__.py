"""`python -m pipeline` runs `doit`, as `.venv/bin/doit` of bootstrap does."""

if __name__ == "__main__":
    from pipeline.commands.entry import main

    main()
