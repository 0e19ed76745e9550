sluice_fuzz(fuzz_outbox_items LIBRARIES sluice::outbox_dynamodb)
