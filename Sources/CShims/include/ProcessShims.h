// What the LocalPeers room needs of prctl(2), which takes a variable number of arguments.
#pragma once

// PR_SET_CHILD_SUBREAPER
void shim_adopt_orphans(void);
