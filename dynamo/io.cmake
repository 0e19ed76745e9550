# Everything of the client that talks to the world.
target_sources(sluice_dynamo PRIVATE
  client.cpp
  client_core.cpp
  clock_skew.cpp
  connection.cpp
  retry.cpp
  server_time.cpp
  settings.cpp
  credentials/assume_role_source.cpp
  credentials/aws_environment.cpp
  credentials/caching_provider.cpp
  credentials/chain.cpp
  credentials/container_source.cpp
  credentials/credentials_json.cpp
  credentials/environment_source.cpp
  credentials/fetch.cpp
  credentials/ini_file.cpp
  credentials/instance_source.cpp
  credentials/process_source.cpp
  credentials/profiles.cpp
  credentials/sso_source.cpp
  credentials/static_profile_source.cpp
  credentials/sts.cpp
  credentials/subprocess.cpp
  credentials/text.cpp
  credentials/web_identity_source.cpp
  signing/sha1.cpp
  transport/curl_exchange.cpp
  transport/curl_transport.cpp)
set_source_files_properties(client_core.cpp PROPERTIES COMPILE_DEFINITIONS SLUICE_VERSION="${PROJECT_VERSION}")
