sluice_fuzz(fuzz_credential_answers LIBRARIES sluice::dynamo)
