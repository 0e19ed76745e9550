#pragma once

#include <curl/curl.h>

#include <memory>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>

#include "settings.hpp"

/// Header lines as curl takes them. Moves; frees what it holds.
class HeaderList {
 public:
  /// A value of any bytes is made safe: control characters become spaces. Throws std::bad_alloc.
  void add(std::string_view name, std::string_view value);
  /// Keeps curl from sending a header of its own.
  void suppress(const std::string& name);
  const curl_slist* get() const { return lines_.get(); }

 private:
  void append(const std::string& line);

  struct Free {
    void operator()(curl_slist* lines) const { curl_slist_free_all(lines); }
  };
  std::unique_ptr<curl_slist, Free> lines_;
};

/// All headers of a message's request. What the job's `headers` name is never set by anything else.
HeaderList request_headers(const Settings& settings, const sluice::Message& message);
