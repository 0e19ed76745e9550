# Debian packages of the components: sluice, sluice-plugins, sluice-sdk, libsluice-client1 and libsluice-client-dev.
# `./dev package` makes them of a release build.
set(debian "${CMAKE_CURRENT_SOURCE_DIR}/debian")
set(package_revision 1)

# What only a package brings: configuration that its owner may change, and what Debian wants to know of each package.
install(FILES debian/host.toml DESTINATION /etc/sluice COMPONENT debian_host EXCLUDE_FROM_ALL)
install(DIRECTORY DESTINATION /etc/sluice/jobs.d COMPONENT debian_host EXCLUDE_FROM_ALL)
file(CONFIGURE OUTPUT changelog.Debian CONTENT
"sluice (${PROJECT_VERSION}-${package_revision}) bookworm; urgency=medium

  * See /usr/share/doc/sluice/changelog.gz.

 -- Sluice maintainers <maintainers@sluice.invalid>  Sun, 22 Nov 2026 00:00:00 +0000
")
foreach(package_and_name sluice:sluice plugins:sluice-plugins sdk:sluice-sdk client_library:libsluice-client1 client:libsluice-client-dev)
  string(REPLACE ":" ";" pair ${package_and_name})
  list(GET pair 0 package)
  list(GET pair 1 name)
  set(documents "share/doc/${name}")
  install(FILES debian/copyright "${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian"
    DESTINATION ${documents} COMPONENT debian_${package} EXCLUDE_FROM_ALL)
  install(FILES "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
    DESTINATION ${documents} RENAME changelog COMPONENT debian_${package} EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sluice)
set(CPACK_PACKAGE_VENDOR Sluice)
set(CPACK_PACKAGE_CONTACT "Sluice maintainers <maintainers@sluice.invalid>")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_SOURCE_DIR}/debian/finish.cmake")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL
  host debian_host debian_sluice plugins debian_plugins sdk debian_sdk client_library debian_client_library client debian_client)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${package_revision})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_SLUICE_PACKAGE_NAME sluice)
set(CPACK_DEBIAN_SLUICE_PACKAGE_SECTION misc)
set(CPACK_DEBIAN_SLUICE_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.52), tzdata")
set(CPACK_DEBIAN_SLUICE_PACKAGE_RECOMMENDS "sluice-plugins, ca-certificates")
set(CPACK_DEBIAN_SLUICE_DESCRIPTION "host that runs handlers over message queues
Sluice claims messages from queues in DynamoDB or in an embedded SQLite
file, runs handler plugins over them, retries, dead-letters, and drains when
it is asked to stop. This package has the host, its commands for operators,
dynamomq (the same program with the words of DynamoMQ's tool), and units for
systemd.")
set(CPACK_DEBIAN_SLUICE_PACKAGE_CONTROL_EXTRA
  "${debian}/conffiles;${debian}/triggers;${debian}/postinst;${debian}/prerm;${debian}/postrm")

set(CPACK_DEBIAN_PLUGINS_PACKAGE_NAME sluice-plugins)
set(CPACK_DEBIAN_PLUGINS_PACKAGE_SECTION misc)
set(CPACK_DEBIAN_PLUGINS_PACKAGE_ENHANCES sluice)
set(CPACK_DEBIAN_PLUGINS_DESCRIPTION "handlers for Sluice: exec, webhook, nats, sns, queue, and others
Plugins for the Sluice host: exec runs a command for each message, webhook
sends it to an HTTP server, nats publishes it to NATS JetStream, sns to
Amazon SNS, queue to another queue, verify-file compares files with their
digests, log writes it to the host's log.")

set(CPACK_DEBIAN_SDK_PACKAGE_NAME sluice-sdk)
set(CPACK_DEBIAN_SDK_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_SDK_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_SDK_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_SDK_PACKAGE_RECOMMENDS "g++, cmake | pkgconf | pkg-config")
set(CPACK_DEBIAN_SDK_PACKAGE_SUGGESTS sluice)
set(CPACK_DEBIAN_SDK_DESCRIPTION "headers for plugins of Sluice
What a handler for the Sluice host is written with: C and C++ headers, a
test kit, sluice_add_plugin for CMake, and a file for pkg-config.")

set(CPACK_DEBIAN_CLIENT_LIBRARY_PACKAGE_NAME libsluice-client1)
set(CPACK_DEBIAN_CLIENT_LIBRARY_PACKAGE_SECTION libs)
# What the packages of programs that link it will depend on.
file(CONFIGURE OUTPUT shlibs CONTENT
  "libsluice-client ${PROJECT_VERSION_MAJOR} libsluice-client1 (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_CLIENT_LIBRARY_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_BINARY_DIR}/shlibs;${debian}/library/triggers")
set(CPACK_DEBIAN_CLIENT_LIBRARY_DESCRIPTION "producer library of Sluice
Sends messages to the queues of Sluice and DynamoMQ, in DynamoDB or a SQLite
file, and looks after them, from programs that have nothing of the host.")

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libsluice-client-dev)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS "libsluice-client1 (= ${PROJECT_VERSION}-${package_revision})")
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "producer library of Sluice, development files
Headers, files for CMake and pkg-config, and an example, for programs that
link libsluice-client.")

include(CPack)
foreach(package sluice plugins sdk client_library client)
  cpack_add_component_group(${package})
  cpack_add_component(debian_${package} GROUP ${package})
endforeach()
cpack_add_component(host GROUP sluice)
cpack_add_component(debian_host GROUP sluice)
foreach(package plugins sdk client_library client)
  cpack_add_component(${package} GROUP ${package})
endforeach()
