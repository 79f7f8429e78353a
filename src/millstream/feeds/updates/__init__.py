"""The update functions of feeds: producers, consumers and the tables that readers need."""
