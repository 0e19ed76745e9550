/*
 * "sluice.health/1": how what a handler works with fares, such as its broker, told to whoever looks at the host. Plain
 * C11, with the rules of <sluice/abi.h>. C++ authors have it as sluice::Host::health.
 *
 * Asked of sluice_host the id answers a `sluice_health`, valid as long as the host. A host that is older than this
 * feature, or that only tries whether the handler can be made, answers NULL.
 */
#ifndef SLUICE_HEALTH_H
#define SLUICE_HEALTH_H

#include "sluice/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_HEALTH_1 "sluice.health/1"

typedef struct sluice_health {
  uint32_t struct_size;
  uint32_t reserved;
  /* Says that the part of this name ("broker") works (not 0) or does not (0), and in one line how. It replaces what this
   * instance said of the part before, and is forgotten with the instance. The host shows it as a component of its health
   * and takes no other consequence. The host cuts `text` to 512 bytes; a name is 1 to 64 bytes, and of more than 16
   * names the further ones are not taken. Cheap, and never waits: say it when it changes. [thread-safe] */
  void (*report)(const struct sluice_host *host, sluice_string part, int32_t works, sluice_string text);
} sluice_health;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_HEALTH_H */
