# Bytes in, bytes out: knows neither sockets nor clocks.
target_sources(sluice_dynamo PRIVATE
  error.cpp
  item_reading.cpp
  codec/crc32.cpp
  codec/error_names.cpp
  codec/error_response.cpp
  codec/header_lookup.cpp
  codec/json_decode.cpp
  codec/json_encode.cpp
  codec/plain_json.cpp
  codec/requests.cpp
  codec/responses.cpp
  codec/table_description.cpp
  codec/transaction_codec.cpp
  endpoints/endpoint_rules.cpp
  endpoints/partition.cpp
  signing/canonical_request.cpp
  signing/digest.cpp
  signing/signer.cpp
  signing/uri.cpp)
