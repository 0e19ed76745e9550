#include "host/observe/probe_result.hpp"

#include "host/observe/escape.hpp"

namespace sluice::observe {

namespace {

const char* status_word(bool ok) { return ok ? "ok" : "failing"; }

}  // namespace

std::string probe_json(const ProbeResult& result) {
  std::string body = std::string(R"({"status":")") + status_word(result.ok) + R"(","text":)";
  append_json_string(body, result.text);
  body += R"(,"components":{)";
  const char* separator = "";
  for (const Component& component : result.components) {
    body += separator;
    append_json_string(body, component.name);
    body += std::string(R"(:{"status":")") + status_word(component.ok) + R"(","text":)";
    append_json_string(body, component.text);
    body += '}';
    separator = ",";
  }
  return body + "}}\n";
}

std::string probe_text(const ProbeResult& result) {
  std::string body = result.text + "\n";
  for (const Component& component : result.components) {
    append_visible(body, component.name + ": " + component.text);
    body += '\n';
  }
  return body;
}

}  // namespace sluice::observe
