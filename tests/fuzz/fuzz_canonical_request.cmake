sluice_fuzz(fuzz_canonical_request LIBRARIES sluice::dynamo)
