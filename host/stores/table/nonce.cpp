#include "host/stores/table/nonce.hpp"

#include "base/fnv1a.hpp"

namespace sluice::queue::table {
namespace {

constexpr std::size_t kTagLength = 5;      // 30 bits
constexpr std::size_t kRandomLength = 11;  // 64 bits and two zero bits

std::string digits(std::uint64_t value, std::size_t count) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text(count, 'A');
  for (char& digit : text) {
    digit = kDigits[value & 63U];
    value >>= 6U;
  }
  return text;
}

}  // namespace

std::uint64_t stable_hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = fnv1a(text, seed);
  hash ^= hash >> 32U;
  hash *= 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29U);
}

NonceSource::NonceSource(std::string_view host, Random& random)
    : random_(random), tag_(digits(stable_hash(host, random.next()), kTagLength)) {}

std::string NonceSource::next() { return tag_ + digits(random_.next(), kRandomLength); }

std::string NonceSource::padded(std::size_t bytes) { return next() + std::string(bytes, '.'); }

std::string NonceSource::anonymous() { return digits(random_.next(), kRandomLength); }

std::string_view NonceSource::tag_of(std::string_view nonce) {
  return nonce.size() == kTagLength + kRandomLength ? nonce.substr(0, kTagLength) : std::string_view();
}

}  // namespace sluice::queue::table
