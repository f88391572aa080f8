"""Past one machine: what spreads the tables over Citus by tenant."""
