"""Several sides of runs beside each other: releases, nights, single runs."""
