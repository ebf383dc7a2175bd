"""Many machines: the device workers of a judge as Ray actors; the one package that imports ray."""
