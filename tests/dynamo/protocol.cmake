sluice_test(dynamo_codec_test
  SOURCES
    codec/crc32_test.cpp
    codec/error_response_test.cpp
    codec/fixture_items_test.cpp
    codec/json_codec_test.cpp
    codec/plain_json_test.cpp
    codec/requests_test.cpp
    codec/responses_test.cpp
    codec/xml_test.cpp
  LIBRARIES sluice::dynamo Boost::json)
sluice_test(dynamo_signing_test
  SOURCES
    signing/signer_test.cpp
    signing/uri_test.cpp
    signing/vectors_test.cpp
  LIBRARIES sluice::dynamo Boost::json)
sluice_test(dynamo_endpoints_test
  SOURCES
    endpoints/endpoint_rules_test.cpp
    endpoints/vectors_test.cpp
  LIBRARIES sluice::dynamo Boost::json)
