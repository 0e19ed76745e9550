#include "tests/publishers/jet_stream.hpp"

#include <nats/nats.h>

#include <array>
#include <stdexcept>

namespace sluice::publishers {
namespace {

void check(natsStatus status, const char* what) {
  if (status != NATS_OK) {
    const char* detail = nats_GetLastError(nullptr);
    throw std::runtime_error(std::string(what) + ": " + (detail != nullptr ? detail : natsStatus_GetText(status)));
  }
}

}  // namespace

struct JetStream::State {
  natsConnection* connection = nullptr;
  jsCtx* context = nullptr;
};

JetStream::JetStream(const std::string& url, const std::string& ca_file) : state_(std::make_unique<State>()) {
  natsOptions* options = nullptr;
  check(natsOptions_Create(&options), "options");
  natsOptions_SetURL(options, url.c_str());
  if (!ca_file.empty()) {
    natsOptions_SetSecure(options, true);
    natsOptions_LoadCATrustedCertificates(options, ca_file.c_str());
  }
  const natsStatus status = natsConnection_Connect(&state_->connection, options);
  natsOptions_Destroy(options);
  check(status, "connecting");
  check(natsConnection_JetStream(&state_->context, state_->connection, nullptr), "JetStream");
}

JetStream::~JetStream() {
  jsCtx_Destroy(state_->context);
  natsConnection_Destroy(state_->connection);
}

void JetStream::add_stream(const std::string& name, const std::vector<std::string>& subjects, std::int32_t largest) {
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  std::vector<const char*> texts;
  texts.reserve(subjects.size());
  for (const std::string& subject : subjects) {
    texts.push_back(subject.c_str());
  }
  config.Name = name.c_str();
  config.Subjects = texts.data();
  config.SubjectsLen = static_cast<int>(texts.size());
  config.Storage = js_FileStorage;
  config.MaxMsgSize = largest == 0 ? -1 : largest;
  check(js_AddStream(nullptr, state_->context, &config, nullptr, nullptr), "adding a stream");
}

std::uint64_t JetStream::count(const std::string& stream) {
  jsStreamInfo* info = nullptr;
  check(js_GetStreamInfo(&info, state_->context, stream.c_str(), nullptr, nullptr), "asking for a stream");
  const std::uint64_t count = info->State.Msgs;
  jsStreamInfo_Destroy(info);
  return count;
}

std::vector<StoredMessage> JetStream::messages(const std::string& stream) {
  constexpr std::array<const char*, 7> kHeaders = {"Event",       "Producer",   "Tombstone",           "Nats-Msg-Id",
                                                   "traceparent", "tracestate", "Nats-Expected-Stream"};
  std::vector<StoredMessage> all;
  const std::uint64_t last = count(stream);
  for (std::uint64_t sequence = 1; sequence <= last; ++sequence) {
    natsMsg* message = nullptr;
    check(js_GetMsg(&message, state_->context, stream.c_str(), sequence, nullptr, nullptr), "reading a message");
    StoredMessage stored{
        natsMsg_GetSubject(message),
        std::string(natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))),
        {}};
    for (const char* name : kHeaders) {
      const char* value = nullptr;
      if (natsMsgHeader_Get(message, name, &value) == NATS_OK) {
        stored.headers[name] = value;
      }
    }
    natsMsg_Destroy(message);
    all.push_back(std::move(stored));
  }
  return all;
}

}  // namespace sluice::publishers
