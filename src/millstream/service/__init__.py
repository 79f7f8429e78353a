"""A run and the server beside it: what the command line, `app.start()` and `into` share.

app_description  writes the application's description into its store
app_packages     packages of an application's code, for the agents of a run
run_server       the server of a run: started, restarted, stopped with it
server_settings  the options of that server, from the run's settings
"""
