sluice_fuzz(fuzz_dynamo_response LIBRARIES sluice::dynamo)
