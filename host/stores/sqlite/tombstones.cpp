#include "host/stores/sqlite/tombstones.hpp"

#include <algorithm>

namespace sluice::queue::sqlite {

Tombstones::Tombstones(Connection& connection)
    : removing_(connection, "sluice_removing"),
      read_(connection, "SELECT bits FROM tombstones WHERE block = ?1"),
      write_(connection, "INSERT OR REPLACE INTO tombstones VALUES (?1, ?2)"),
      next_(connection, "SELECT min(block) FROM tombstones WHERE block > ?1"),
      drop_(connection, "DELETE FROM tombstones WHERE block = ?1"),
      delete_messages_(connection, "DELETE FROM messages WHERE seq IN (SELECT hash FROM sluice_removing)"),
      delete_links_(connection, "DELETE FROM chains WHERE seq IN (SELECT hash FROM sluice_removing)") {}

// SQLite has no operator for a bit of a blob; the digits of hex() are told apart by their place in a text.
std::string Tombstones::buried() {
  return "EXISTS (SELECT 1 FROM tombstones AS t WHERE t.block = m.seq >> 12 AND "
         "(instr('0123456789ABCDEF', substr(hex(substr(t.bits, ((m.seq & 4095) >> 3) + 1, 1)), 2 - ((m.seq >> 2) & 1), "
         "1)) - 1) >> (m.seq & 3) & 1)";
}

void Tombstones::bury(std::span<const std::int64_t> seqs, WallTime now) {
  if (!last_) {
    sweep();  // by processes that end soon nothing else is swept
  }
  for (std::size_t from = 0; from < seqs.size();) {
    const std::int64_t block = seqs[from] >> kBlockBits;
    std::size_t end = from;
    while (end < seqs.size() && seqs[end] >> kBlockBits == block) {
      ++end;
    }
    bury_in(block, seqs.subspan(from, end - from));
    from = end;
  }
  last_ = now;
  buried_ += seqs.size();
  while ((buried_ >= kForASweep || begun_ >= kMostBegun) && sweep()) {
    buried_ -= std::min(buried_, kForASweep);
    begun_ -= std::min(begun_, kForASweep);
  }
}

void Tombstones::sweep_idle(WallTime now) {
  // Also where the clock was set back meanwhile.
  if (!last_ || now < *last_ || now - *last_ >= kBusy) {
    last_ = now;
    sweep();
  }
}

void Tombstones::make_room() {
  for (int sweeps = 0; sweeps < kSweepsForRoom && sweep(); ++sweeps) {
  }
}

void Tombstones::bury_in(std::int64_t block, std::span<const std::int64_t> seqs) {
  read_.bind(block);
  bits_.clear();
  if (read_.row()) {
    bits_ = read_.bytes(0);
  } else if (block > newest_) {
    newest_ = block;
    begun_ += kBlock;
  }
  read_.reset();
  bits_.resize(kBlock / 8);
  for (const std::int64_t seq : seqs) {
    const auto at = static_cast<std::size_t>(seq & (kBlock - 1));
    bits_[at / 8] = static_cast<char>(static_cast<unsigned char>(bits_[at / 8]) | (1U << (at % 8)));
  }
  write_.bind(block, Blob{bits_}).run();
}

bool Tombstones::sweep() {
  for (const std::int64_t from : {swept_, std::int64_t{-1}}) {
    next_.bind(from);
    const auto block = next_.row() ? next_.optional_integer(0) : std::nullopt;
    next_.reset();
    if (block) {
      swept_ = *block;
      remove_rows(*block);
      return true;
    }
  }
  return false;
}

void Tombstones::remove_rows(std::int64_t block) {
  read_.bind(block);
  seqs_.clear();
  if (read_.row()) {
    const std::string_view bits = read_.bytes(0);
    for (std::size_t at = 0; at < bits.size() * 8; ++at) {
      if ((static_cast<unsigned char>(bits[at / 8]) >> (at % 8) & 1U) != 0) {
        seqs_.push_back((block << kBlockBits) + static_cast<std::int64_t>(at));
      }
    }
  }
  read_.reset();
  const auto none = [](const Statement& /*row*/) {};
  removing_.each(seqs_, delete_messages_, none);
  removing_.each(seqs_, delete_links_, none);
  drop_.bind(block).run();
}

}  // namespace sluice::queue::sqlite
