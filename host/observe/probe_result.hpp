#pragma once

#include <string>
#include <vector>

namespace sluice::observe {

/// A part of the host, or what it works with, and how it fares. A value.
struct Component {
  std::string name;
  bool ok = true;
  std::string text;  ///< one line
};

/// What a probe answers: HTTP 200 when ok, 503 otherwise, with the text as the body.
struct ProbeResult {
  bool ok = true;
  std::string text;                     ///< one line, such as "ready" or "draining"
  std::vector<Component> components{};  ///< told beside it
};

/// Its text, and below it a line for each component.
std::string probe_text(const ProbeResult& result);
/// `{"status":"ok","text":"ready","components":{"store":{"status":"ok","text":"ok"}}}`, or "failing".
std::string probe_json(const ProbeResult& result);

}  // namespace sluice::observe
