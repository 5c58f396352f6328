// Memory that a process holds without need.
#pragma once

// Takes the pages of the program and its libraries that can't be written (code and constants) out of this process's
// memory. They stay in the system's page cache as long as there is room, and what is touched again comes back from
// there.
void shim_unmap_programs(void);
