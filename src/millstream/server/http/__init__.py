"""Connections of clients, hostile ones too; finding routes; and the forms of an answer."""
