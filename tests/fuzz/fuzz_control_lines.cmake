sluice_fuzz(fuzz_control_lines LIBRARIES sluice::runtime)
