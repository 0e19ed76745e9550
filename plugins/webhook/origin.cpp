#include "origin.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) {
    return {};
  }
  std::string copy(text);
  curl_free(text);
  std::transform(copy.begin(), copy.end(), copy.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return copy;
}

}  // namespace

std::string origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, FreeUrl> parsed(curl_url());
  if (parsed == nullptr || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return {};
  }
  return part(parsed.get(), CURLUPART_SCHEME) + "://" + part(parsed.get(), CURLUPART_HOST) + ":" +
         part(parsed.get(), CURLUPART_PORT);
}
