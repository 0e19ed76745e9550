sluice_fuzz(fuzz_filter LIBRARIES sluice::operate)
