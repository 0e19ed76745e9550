target_sources(sluice_dynamo PRIVATE)
