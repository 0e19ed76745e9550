sluice_fuzz(fuzz_stored_items LIBRARIES sluice::dynamodb_store)
