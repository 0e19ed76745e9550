sluice_fuzz(fuzz_datagram LIBRARIES sluice::wake)
