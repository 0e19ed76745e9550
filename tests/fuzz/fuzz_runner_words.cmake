sluice_fuzz(fuzz_runner_words LIBRARIES sluice::isolation)
