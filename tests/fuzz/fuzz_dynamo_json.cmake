sluice_fuzz(fuzz_dynamo_json LIBRARIES sluice::dynamo)
