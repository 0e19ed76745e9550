#pragma once

#include <curl/curl.h>

#include <memory>
#include <sluice/handler.hpp>
#include <string_view>

#include "answer.hpp"
#include "headers.hpp"
#include "settings.hpp"

/// Sends requests one after the other and keeps the connection alive between them. Used by one thread at a time.
/// `settings` outlives it.
class Sender {
 public:
  explicit Sender(const Settings& settings);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// Returns when the answer is there, or soon after the context asks to stop. Redirects are followed as far as the
  /// settings allow, and never to another origin: what the headers hold is meant for this one alone.
  Answer send(std::string_view body, const HeaderList& headers, const sluice::Context& context);

 private:
  void configure();
  Answer exchange(const std::string& url, std::chrono::milliseconds timeout, const sluice::Context& context);
  CURLcode perform(const sluice::Context& context, bool* stopped);

  struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };

  const Settings& settings_;
  const std::string origin_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::unique_ptr<CURL, FreeEasy> easy_;  ///< destroyed first
};
