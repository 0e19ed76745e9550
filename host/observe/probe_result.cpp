#include "host/observe/probe_result.hpp"

#include "base/text/json_writer.hpp"
#include "base/text/visible.hpp"

namespace sluice::observe {

namespace {

const char* status_word(bool ok) { return ok ? "ok" : "failing"; }

}  // namespace

std::string probe_json(const ProbeResult& result) {
  JsonWriter json;
  json.begin_object();
  json.member("status", status_word(result.ok));
  json.member("text", result.text);
  json.key("components");
  json.begin_object();
  for (const Component& component : result.components) {
    json.key(component.name);
    json.begin_object();
    json.member("status", status_word(component.ok));
    json.member("text", component.text);
    json.end_object();
  }
  json.end_object();
  json.end_object();
  return json.take_line();
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
