sluice_fuzz(fuzz_ini LIBRARIES sluice::dynamo)
