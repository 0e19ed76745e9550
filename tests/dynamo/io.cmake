# Tests of what talks to the world.
sluice_test(dynamo_transport_test
  SOURCES transport/curl_transport_test.cpp transport/curl_chaos_test.cpp transport/tls_test.cpp
  LIBRARIES sluice::dynamo sluice::test_support)
sluice_test(dynamo_client_test
  SOURCES client/retry_test.cpp client/client_test.cpp client/emulator_test.cpp client/server_time_test.cpp client/timeout_test.cpp
    client/transact_test.cpp
  LIBRARIES sluice::dynamo sluice::test_support)
sluice_test(dynamo_credentials_test
  SOURCES
    credentials/caching_provider_test.cpp credentials/chain_test.cpp credentials/container_and_instance_test.cpp
    credentials/ini_file_test.cpp credentials/process_test.cpp credentials/settings_test.cpp
  LIBRARIES sluice::dynamo sluice::test_support)
