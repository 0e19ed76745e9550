sluice_fuzz(fuzz_record_line LIBRARIES sluice::operate)
