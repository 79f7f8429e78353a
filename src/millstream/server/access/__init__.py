"""Who may send a request: tokens and what they grant, rates, addresses, the access log."""
