from kelpie.cli.process_end import run

if __name__ == "__main__":
    run()
